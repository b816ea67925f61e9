#!/usr/bin/env bash
# Makes all that a release consists of, from a clean checkout: the same bytes for the same commit, Rust
# and packages of Debian, wherever the checkout is. install/RELEASE.md says what a person does with it.
#
#   install/release.sh [--trial] VERSION [OUT_DIR]     (default: target/release-VERSION)
#
# --trial           also with placeholders for maintainer, homepage and repository in Cargo.toml
# ARCHES            "x86_64" or "aarch64" for a release of one architecture (default: both)
# BUILT_aarch64     an executable that build.sh has built already, and so BUILT_x86_64
#
# For each architecture OUT_DIR gets an archive, a .deb, a .rpm, an SBOM (CycloneDX) and the licences of
# what is linked; for all of them one image, and SHA256SUMS. What is missing is installed with apt and
# cargo; with CARGO_NET_OFFLINE=true and all of it here, nothing is asked of the network.
set -euo pipefail
export LC_ALL=C TZ=UTC
umask 022
unset MAINTAINER XZ_OPT XZ_DEFAULTS GZIP TAR_OPTIONS
start=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")/.."
top=$PWD
# shellcheck source=tests/boot.sh
. tests/boot.sh
# shellcheck source=install/linked.sh
. install/linked.sh

trial=
[[ ${1:-} != --trial ]] || { trial=1; shift; }
[[ $# == [12] && $1 != -* ]] || usage install/release.sh "${1:-}"
version=$1
read -ra arches <<<"${ARCHES:-x86_64 aarch64}"

# What has to name the version, and does so in this manner.
names_version() { # file, line
  grep -qE "$2" "$1" || die "$1 is not of version $version: it has no line '${2//\\/}'"
}
dots=${version//./\\.}
[[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] || die "'$version' is no version such as 1.2.3"
names_version Cargo.toml "^version = \"$dots\"$"
# A trial may be of what has no version yet.
{ [ -n "$trial" ] && grep -qx '## \[Unreleased\]' CHANGELOG.md; } ||
  names_version CHANGELOG.md "^## \\[$dots\\] - [0-9]{4}-[0-9]{2}-[0-9]{2}$"
names_version install/daemonset.yaml "image: localhost/flexvolume-lvm:$dots$"
names_version install/kustomization.yaml "newTag: $dots$"
placeholders=$(sed -n '/^\[package\]/,/^\[/s/^\(authors\|homepage\|repository\) = .*\.invalid.*/\1/p' Cargo.toml | xargs)
[ -n "$trial" ] || [ -z "$placeholders" ] ||
  die "Cargo.toml has placeholders, which end in .invalid: fill in ${placeholders// /, }, or make a trial with --trial"
[ -z "$(git status --porcelain)" ] ||
  die "the checkout is not clean; commit, or take a new clone: $(git status --porcelain | head -n 3 | xargs)"

out=$(cd "$start" && realpath --canonicalize-missing "${2:-$top/target/release-$version}")
[ -z "$(ls -A "$out" 2>/dev/null)" ] || die "$out is not empty; remove what is there, or name another directory"

SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
need_rust
need jq:jq
need_cargo_tool cargo-cyclonedx 0.5.9 --debug
export PATH=$TOOL:$PATH

[ "$(git describe --exact-match --match "v$version" 2>/dev/null)" = "v$version" ] || say "this commit has no tag v$version"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/out" "$work/licenses" "$work/source"

# Prints the path of the executable for an architecture.
built() {
  local ready=BUILT_$1
  if [ -n "${!ready:-}" ]; then (cd "$start" && realpath "${!ready}"); else install/build.sh "$1"; fi
}

# sbom ARCH EXECUTABLE: the crates as cargo-cyclonedx describes them, without those that are not linked,
# and with what is linked and is no crate. It does not see the checkout, into which it would write.
sbom() {
  local arch=$1 triple=$1-unknown-linux-gnu
  linked_with "$arch" "$2"
  (cd "$work/source" && cargo cyclonedx --quiet --format json --spec-version 1.5 --no-build-deps \
    --target "$triple" --override-filename "$arch")
  jq --sort-keys --arg rust "$RUSTC" --arg gcc "$GCC" --arg glibc "$GLIBC" \
    --rawfile crates <(linked_crates "$arch") '
    def library($name; $version; $license):
      {type: "library", name: $name, version: $version, scope: "required", licenses: [{expression: $license}]};
    # As "Debian 12.2.0-14".
    ($gcc / " ") as [$debian, $gcc] |
    def source($name; $version): {purl: "pkg:deb/\($debian | ascii_downcase)/\($name)@\($version)?arch=source"};
    ($crates / "\n") as $linked
    | .components |= map(select("\(.name)@\(.version)" | IN($linked[])))
    | ([.components[], .metadata.component] | map(."bom-ref")) as $refs
    | .dependencies |= map(select(.ref | IN($refs[])) | if .dependsOn then .dependsOn |= map(select(IN($refs[]))) else . end)
    | del(.metadata.component.components)
    | .components += [
        library("rust-std"; $rust / " " | .[1]; "MIT OR Apache-2.0"),
        library("libgcc"; $gcc; "GPL-3.0-or-later WITH GCC-exception-3.1") + source("gcc-\($gcc / "." | .[0])"; $gcc),
        library("glibc"; $glibc; "LGPL-2.1-or-later") + source("glibc"; $glibc)]
    | walk(if type == "string" then sub("^path[+]file:[^#]*#"; "") | sub("[?]download_url=file:.*"; "") else . end)' \
    "$work/source/$arch.json"
}

# archive ARCH EXECUTABLE
archive() {
  local name=flexvolume-lvm-$version-$1
  local dir=$work/$name
  mkdir -p "$dir/share"
  install/pages.sh "$dir"
  install -m 755 "$2" "$dir/lvm"
  cp "$work/licenses/$1.txt" "$dir/licenses.txt"
  cargo xtask "$dir"
  mv "$dir/man" "$dir/share/"
  tar --create --directory "$work" --format=ustar --sort=name --mtime="@$SOURCE_DATE_EPOCH" \
    --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX "$name" | gzip --no-name -9 >"$work/out/$name.tar.gz"
}

git archive HEAD | tar --extract --directory "$work/source"
executables=()
for arch in "${arches[@]}"; do
  say "$arch"
  driver=$(built "$arch")
  executables+=("$driver")
  name=flexvolume-lvm-$version-$arch
  install/licenses.sh "$arch" "$driver" >"$work/licenses/$arch.txt"
  cp "$work/licenses/$arch.txt" "$work/out/$name.licenses.txt"
  sbom "$arch" "$driver" >"$work/out/$name.cdx.json"
  archive "$arch" "$driver"
  LICENSES=$work/licenses/$arch.txt install/package.sh "$arch" "$driver" "$work/out"
done
LICENSES=$work/licenses IMAGE=localhost/flexvolume-lvm:$version \
  install/image.sh "$work/out/flexvolume-lvm-$version-image.tar" "${executables[@]}"
(cd "$work/out" && sha256sum -- * >"$work/SHA256SUMS" && mv "$work/SHA256SUMS" .)

mkdir -p "$out"
cp "$work"/out/* "$out"
say "$out"
cat "$out/SHA256SUMS"
