#!/usr/bin/env bash
# Builds the driver, one static executable, and prints its path as the last line. The same sources
# and the same Rust make the same bytes, wherever the checkout and cargo's own directory are.
#
#   install/build.sh ARCH [OPTION OF CARGO…]
#
# ARCH     x86_64 or aarch64
# OPTION…  of `cargo build`, with a name at the end (default: --release --bin lvm)
#
# For the other architecture rustup adds its standard library; where there is no rustup, or it
# reaches none, Debian sid's rustc builds, in files of sid that debootstrap puts into
# ~/.cache/flexvolume-lvm once. RUST=rustup or RUST=debian chooses. What is missing is installed
# with apt. What is built goes to ARCH-unknown-linux-gnu/ in CARGO_TARGET_DIR (default: target, in
# this checkout), where `cargo build` puts its own.
set -euo pipefail

say() { printf 'build.sh: %s\n' "$*" >&2; }
fail() { say "$@"; exit 1; }

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$top"
arch=${1:-}
case $arch in
  x86_64) deb=amd64 ;;
  aarch64) deb=arm64 ;;
  *)
    sed -n '2,/^set /s/^# \{0,1\}//p' "$0"
    [[ $arch == --help || $arch == -h ]] && exit
    exit 2
    ;;
esac
shift
[[ $# -gt 0 ]] || set -- --release --bin lvm
rust=${RUST:-}
[[ $rust =~ ^(|rustup|debian)$ ]] || fail "RUST is '$rust'; set it to rustup or debian, or to nothing"
triple=$arch-unknown-linux-gnu
gcc=gcc-${arch/_/-}-linux-gnu
export CARGO_HOME=${CARGO_HOME:-$HOME/.cargo} CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$top/target}
[[ $CARGO_TARGET_DIR == /* ]] || CARGO_TARGET_DIR=$top/$CARGO_TARGET_DIR
cache=${XDG_CACHE_HOME:-$HOME/.cache}/flexvolume-lvm
tree=$cache/rust-$arch # the files of Debian sid, with its rustc

as_root() {
  if [[ $(id -u) == 0 ]]; then "$@"; else sudo "$@"; fi
}

install_packages() {
  command -v apt-get >/dev/null || fail "install these of Debian's packages, or what they are called here: $*"
  say "installing with apt: $*"
  as_root apt-get update -qq >&2
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    -o DPkg::Lock::Timeout=300 "$@" >&2
}

# Whether this machine's rustc has the standard library of the target.
has_library() { compgen -G "$(rustc --print sysroot)/lib/rustlib/$triple/lib/libstd-*.rlib" >/dev/null; }

# Whether this machine's cargo can build for the target, once rustup was asked. A network that swallows what is sent
# to it costs two minutes, once.
builds_here() {
  command -v cargo >/dev/null || return 1
  [[ $arch != "$(uname -m)" ]] && ! has_library || return 0
  [[ $rust == rustup || ! -e $tree ]] && command -v rustup >/dev/null || return 1
  timeout 120 rustup target add "$triple" >&2 && has_library
}

make_tree() {
  local mirror
  PATH=$PATH:/usr/sbin:/sbin command -v debootstrap >/dev/null || install_packages debootstrap
  say "making the files of Debian sid in $tree, which takes some minutes"
  # The mirror that this machine itself uses; without one, debootstrap knows one.
  mirror=$(apt-get indextargets --format "\$(REPO_URI)" 'Origin: Debian' 'Label: Debian' | sed -n 1p) || true
  as_root rm -rf "$tree.new"
  # What it mounts goes with its namespace, however it ends.
  # shellcheck disable=SC2016
  as_root unshare --mount bash -euc '
    debootstrap --variant=minbase --include=ca-certificates sid "$0" ${3:+"$3"}
    chroot "$0" dpkg --add-architecture "$2"
    # A mirror may be a copy of an older day: debootstrap takes that too.
    chroot "$0" apt-get -o Acquire::Check-Valid-Until=false update -qq
    chroot "$0" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        cargo "$1" "libc6-dev-$2-cross" "libstd-rust-dev:$2"
    rm -rf "$0"/var/cache/apt "$0"/var/lib/apt/lists' "$tree.new" "$gcc" "$deb" "$mirror" >"$tree.log" 2>&1 || {
    tail -n 20 "$tree.log" >&2
    fail "Debian sid could not be made for its rustc, see $tree.log"
  }
  as_root mv "$tree.new" "$tree"
}

# Runs a command as this user in the tree, where it sees the checkout and what cargo has.
in_tree() {
  mkdir -p "$CARGO_HOME" "$CARGO_TARGET_DIR"
  # shellcheck disable=SC2016
  as_root env HOME="$HOME" CARGO_HOME="$CARGO_HOME" CARGO_TARGET_DIR="$CARGO_TARGET_DIR" \
    ${CARGO_NET_OFFLINE:+CARGO_NET_OFFLINE="$CARGO_NET_OFFLINE"} unshare --mount bash -euc '
    tree=$0 user=$1; shift
    mount -t tmpfs tmpfs "$tree/tmp"
    for dir in /proc /dev "$PWD" "$CARGO_HOME" "$CARGO_TARGET_DIR"; do
      mkdir -p "$tree$dir"
      mount --rbind "$dir" "$tree$dir"
    done
    [ ! -e /etc/resolv.conf ] || mount --bind /etc/resolv.conf "$tree/etc/resolv.conf"
    exec chroot --userspec="$user" "$tree" env --chdir="$PWD" PATH=/usr/bin:/bin "$@"' \
    "$tree" "$(id -u):$(id -g)" "$@"
}

[[ $rust == debian ]] || builds_here || {
  [[ $rust != rustup ]] || fail "rustup has no standard library for $triple here; set RUST=debian"
  rust=debian
}
run=()
if [[ $rust == debian ]]; then
  mkdir -p "$cache"
  # Another build may be making it.
  (flock 9; [[ -e $tree ]] || make_tree) 9>"$tree.lock"
  run=(in_tree)
elif [[ $arch != "$(uname -m)" ]]; then
  # Without the library it prints the bare name.
  [[ $("$arch-linux-gnu-gcc" --print-file-name=libc.a 2>/dev/null) == /* ]] ||
    install_packages "$gcc" "libc6-dev-$deb-cross"
fi

# Paths are in what a program says when it panics. One in cargo's registry has the name of a mirror.
flags=("--remap-path-prefix=$top=/flexvolume-lvm" "--remap-path-prefix=$CARGO_HOME=/cargo")
"${run[@]}" cargo fetch --locked --target "$triple" >&2
for dir in "$CARGO_HOME"/registry/src/*; do flags+=("--remap-path-prefix=$dir=/crates"); done
config=("target.$triple.rustflags=[$(printf "'%s'," "${flags[@]}")]")
if [[ $rust == debian || $arch != "$(uname -m)" ]]; then config+=("target.$triple.linker='$arch-linux-gnu-gcc'"); fi

# In the environment, flags would stand instead of those in .cargo/config.toml, which link it statically.
"${run[@]}" env -u RUSTFLAGS -u CARGO_ENCODED_RUSTFLAGS -u CARGO_BUILD_RUSTFLAGS cargo build --locked --offline \
  --target "$triple" "${config[@]/#/--config=}" --message-format=json-render-diagnostics "$@" |
  grep -F "\"name\":\"${!#}\"" | sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' | tail -n 1
