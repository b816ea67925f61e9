# shellcheck shell=bash
# Sourced by licenses.sh and release.sh: what is in the executable.

# linked_crates ARCH: the crates whose code is in it, or has written some of it, as NAME@VERSION. No
# tool that reads `cargo metadata` knows this: it also has what a feature names that nobody asks for.
linked_crates() {
    cargo tree --locked --package flexvolume-lvm --edges normal --prefix none --no-dedupe --target "$1-unknown-linux-gnu" |
        awk '{ print $1 "@" substr($2, 2) }' | LC_ALL=C sort -u
}

# linked_with ARCH EXECUTABLE: sets RUSTC, GCC and GLIBC to the versions that it was linked with, and
# STD_COPYRIGHT, LIBC_COPYRIGHT and LGPL to the files that have these licences.
# shellcheck disable=SC2034
linked_with() {
    local package=libc6-dev said
    need readelf:binutils >&2
    said=$(readelf --string-dump=.comment "$2")
    RUSTC=$(sed -n 's/.*\(rustc\) version \(.*\)/\1 \2/p' <<< "$said")
    GCC=$(sed -n 's/.*GCC: (\(.*\)) .*/\1/p' <<< "$said" | head -n 1)
    STD_COPYRIGHT=$(rustc --print sysroot)/share/doc/rust/COPYRIGHT-library.html
    # Debian's own Rust has it there.
    [ -e "$STD_COPYRIGHT" ] || STD_COPYRIGHT=/usr/share/doc/libstd-rust-dev/copyright
    [ "$1" = "$(uname -m)" ] || package=libc6-dev-$(sed 's/aarch64/arm64/; s/x86_64/amd64/' <<< "$1")-cross
    LIBC_COPYRIGHT=/usr/share/doc/$package/copyright
    LGPL=/usr/share/common-licenses/LGPL-2.1
    # A cross-compiler's package has versions of its own, and names that of glibc in this field.
    # shellcheck disable=SC2016
    GLIBC=$(dpkg-query --show --showformat='glibc (= ${source:Version}) ${Built-Using}' "$package" |
        grep -o 'glibc (= [^)]*' | tail -n 1) || true
    GLIBC=${GLIBC#*= }
    [[ -n $RUSTC && -n $GCC && -n $GLIBC ]] ||
        die "$2 does not say what it was built with (rustc '$RUSTC', GCC '$GCC', glibc '$GLIBC'); build it on Debian or Ubuntu"
}
