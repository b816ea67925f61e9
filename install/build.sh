#!/usr/bin/env bash
# Builds the driver, one static executable, and prints its path as the last line. The same sources
# and the same Rust make the same bytes, wherever the checkout and cargo's own directory are.
#
#   install/build.sh ARCH [OPTION OF CARGO…]
#
# ARCH     x86_64 or aarch64
# OPTION…  of `cargo build`, with a name at the end (default: --release --bin lvm)
#
# For the other architecture rustup adds its standard library, and apt installs the cross-compiler if it
# is missing. The executable goes to ARCH-unknown-linux-gnu/ in CARGO_TARGET_DIR (default: target, in this
# checkout), where `cargo build` puts its own.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
top=$PWD
# shellcheck source=tests/boot.sh
. tests/boot.sh

arch=${1:-}
case $arch in
  x86_64) deb=amd64 ;;
  aarch64) deb=arm64 ;;
  *) usage install/build.sh "$arch" ;;
esac
shift
[[ $# -gt 0 ]] || set -- --release --bin lvm
triple=$arch-unknown-linux-gnu
export CARGO_HOME=${CARGO_HOME:-$HOME/.cargo} CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$top/target}
[[ $CARGO_TARGET_DIR == /* ]] || CARGO_TARGET_DIR=$top/$CARGO_TARGET_DIR

command -v cargo >/dev/null || die "install Rust, as https://rustup.rs says"
if [[ $arch != "$(uname -m)" ]]; then
  if ! compgen -G "$(rustc --print sysroot)/lib/rustlib/$triple/lib/libstd-*.rlib" >/dev/null; then
    # A network may swallow what is sent to it.
    timeout 300 rustup target add "$triple" >&2 ||
      die "rustc has no standard library for $triple, and rustup added none; build on $arch itself"
  fi
  # Without the library it prints the bare name.
  [[ $("$arch-linux-gnu-gcc" --print-file-name=libc.a 2>/dev/null) == /* ]] ||
    install_packages "gcc-${arch/_/-}-linux-gnu" "libc6-dev-$deb-cross" >&2
fi

# Paths are in what a program says when it panics. One in cargo's registry has the name of a mirror.
flags=("--remap-path-prefix=$top=/flexvolume-lvm" "--remap-path-prefix=$CARGO_HOME=/cargo")
cargo fetch --locked --target "$triple" >&2
for dir in "$CARGO_HOME"/registry/src/*; do flags+=("--remap-path-prefix=$dir=/crates"); done
config=("target.$triple.rustflags=[$(printf "'%s'," "${flags[@]}")]")
if [[ $arch != "$(uname -m)" ]]; then config+=("target.$triple.linker='$arch-linux-gnu-gcc'"); fi

# In the environment, flags would stand instead of those in .cargo/config.toml, which link it statically.
env -u RUSTFLAGS -u CARGO_ENCODED_RUSTFLAGS -u CARGO_BUILD_RUSTFLAGS cargo build --locked --offline \
  --target "$triple" "${config[@]/#/--config=}" --message-format=json-render-diagnostics "$@" |
  grep -F "\"name\":\"${!#}\"" | sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' | tail -n 1
