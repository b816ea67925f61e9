#!/usr/bin/env bash
# Makes the container image with tar alone: no daemon, no root, the same bytes every time.
#
#   install/image.sh [ARCHIVE [EXECUTABLE…]]     (default: flexvolume-lvm.tar)
#
# EXECUTABLE…  the driver for x86_64, for aarch64, or both in one image (default: DRIVER)
# DRIVER       the executable (default: what `cargo build --release` built in this checkout)
# IMAGE        the image's name (default: localhost/flexvolume-lvm:VERSION)
# LICENSES     a directory with x86_64.txt and aarch64.txt: each goes in as /licenses.txt
#
# The archive is an OCI layout that docker reads too. Load it on a node with one of
#   ctr -n k8s.io images import ARCHIVE      k3s ctr images import ARCHIVE
#   podman load -i ARCHIVE                   docker load -i ARCHIVE
# or send it to a registry with `skopeo copy --all oci-archive:ARCHIVE docker://…`. A docker that does
# not keep its images in containerd takes the first of the executables, whatever machine it is on.
set -euo pipefail
umask 022
unset TAR_OPTIONS

fail() { printf 'image.sh: %s\n' "$*" >&2; exit 1; }

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
archive=${1:-flexvolume-lvm.tar}
case $archive in
  -*)
    sed -n '2,/^set /s/^# \{0,1\}//p' "$0"
    [[ $archive == --help || $archive == -h ]] && exit
    exit 2
    ;;
esac
shift $(($# > 0))
[[ $# -gt 0 ]] || set -- "${DRIVER:-$top/target/$(uname -m)-unknown-linux-gnu/release/lvm}"

# What the registries show of it.
of_cargo() { sed -n "s|^$1 = \"\(.*\)\"|\1|p" "$top/Cargo.toml"; }
labels() {
  printf '"org.opencontainers.image.%s":"%s",' title flexvolume-lvm description "$(of_cargo description)" \
    url "$(of_cargo homepage)" source "$(of_cargo repository)" licenses "$(of_cargo license)"
  printf '"org.opencontainers.image.version":"%s"' "$version"
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
blobs=$work/image/blobs/sha256
mkdir -p "$blobs"

pack() { # archive, directory, names…
  local out=$1 dir=$2
  shift 2
  tar --create --file "$out" --directory "$dir" --format=ustar --sort=name --mtime=@0 \
    --owner=0 --group=0 --numeric-owner "$@"
}

# Moves a file among the blobs. Sets `digest` and `size`.
blob() {
  digest=$(sha256sum <"$1" | cut -d' ' -f1)
  size=$(stat -c %s "$1")
  mv "$1" "$blobs/$digest"
}

# Adds the executable's image. Its descriptor is added to `manifests`, and its platform to `platforms`.
manifests='' platforms='' version=''
add() {
  local driver=$1 machine arch digest size layer layer_size config config_size here names=(lvm)
  # A bare name would be looked for in PATH, where `lvm` is LVM's own command.
  [[ $driver == */* ]] || driver=./$driver
  [[ -f $driver && -x $driver ]] ||
    fail "there is no executable $driver: run \`cargo build --release\` first"
  # The image is for the machine that the executable is for: byte 18 of an ELF file says which.
  case $(od -An -tu2 -j18 -N2 "$driver" | tr -d ' ') in
    62) machine=x86_64 arch=amd64 ;;
    183) machine=aarch64 arch=arm64 ;;
    *) fail "$driver is for neither x86_64 nor aarch64" ;;
  esac
  [[ " $platforms " != *" $arch "* ]] || fail "two executables are for $arch; name one for each machine"
  # An executable for another machine does not run here, and each has this in what it says of a bug.
  here=$(grep -aom1 'flexvolume-lvm [0-9][0-9A-Za-z.+-]*' "$driver") || fail "$driver is not this driver"
  [[ ${version:=${here#* }} == "${here#* }" ]] || fail "$driver is version ${here#* }, and not $version"

  mkdir "$work/$arch"
  install -m 0755 "$driver" "$work/$arch/lvm"
  if [[ -n ${LICENSES:-} ]]; then
    install -m 0644 "$LICENSES/$machine.txt" "$work/$arch/licenses.txt"
    names+=(licenses.txt)
  fi
  pack "$work/layer" "$work/$arch" "${names[@]}"
  blob "$work/layer"
  layer=$digest layer_size=$size

  cat >"$work/config" <<END
{"architecture":"$arch","os":"linux","config":{"Entrypoint":["/lvm"],"Cmd":["install","--follow"],"WorkingDir":"/","Labels":{$(labels)}},"rootfs":{"type":"layers","diff_ids":["sha256:$layer"]},"history":[{"comment":"install/image.sh"}]}
END
  blob "$work/config"
  config=$digest config_size=$size
  first_config=${first_config:-$config} first_layer=${first_layer:-$layer}

  cat >"$work/manifest" <<END
{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":"sha256:$config","size":$config_size},"layers":[{"mediaType":"application/vnd.oci.image.layer.v1.tar","digest":"sha256:$layer","size":$layer_size}]}
END
  blob "$work/manifest"
  manifests+=${manifests:+,}'{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"sha256:'$digest'","size":'$size',"platform":{"architecture":"'$arch'","os":"linux"}}'
  platforms+=${platforms:+ }$arch
}
for driver in "$@"; do add "$driver"; done
name=${IMAGE:-localhost/flexvolume-lvm:$version}
[[ $name =~ ^[A-Za-z0-9./:_-]+:[A-Za-z0-9._-]+$ ]] || fail "IMAGE '$name': not NAME:TAG"

type=application/vnd.oci.image.index.v1+json
top_level=$manifests
if [[ $platforms == *' '* ]]; then
  # One name for all: an index of its own, since some tools take no layout with several images.
  echo '{"schemaVersion":2,"mediaType":"'$type'","manifests":['"$manifests"']}' >"$work/index"
  blob "$work/index"
  top_level='{"mediaType":"'$type'","digest":"sha256:'$digest'","size":'$size'}'
fi
cat >"$work/image/index.json" <<END
{"schemaVersion":2,"mediaType":"$type","manifests":[${top_level%\}},"annotations":{"io.containerd.image.name":"$name","org.opencontainers.image.ref.name":"$name"}}]}
END
# What docker reads instead of index.json.
cat >"$work/image/manifest.json" <<END
[{"Config":"blobs/sha256/$first_config","RepoTags":["$name"],"Layers":["blobs/sha256/$first_layer"]}]
END
echo '{"imageLayoutVersion":"1.0.0"}' >"$work/image/oci-layout"

pack "$archive.part" "$work/image" oci-layout index.json manifest.json blobs
mv "$archive.part" "$archive"
echo "$archive: $name, $platforms, $(sed 's/.*"digest":"\([^"]*\)".*/\1/' "$work/image/index.json")"
