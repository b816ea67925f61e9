#!/usr/bin/env bash
# Prints what is linked into the executable and under which licences, with the text of each: who passes
# the executable on passes this on with it.
#
#   install/licenses.sh ARCH EXECUTABLE     (as `install/build.sh ARCH` has built it)
#
# The texts are those in the sources of the crates, in this machine's Rust, and in Debian's libc6-dev.
set -euo pipefail
export LC_ALL=C
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=tests/boot.sh
. tests/boot.sh
# shellcheck source=install/linked.sh
. install/linked.sh

[[ $# == 2 && $1 != -* ]] || usage install/licenses.sh "${1:-}"
need jq:jq >&2
arch=$1
linked_with "$arch" "$2"
for file in "$LGPL" "$LIBC_COPYRIGHT" "$STD_COPYRIGHT"; do
    [ -e "$file" ] || die "there is no $file, whose text belongs to what is linked; is this Debian or Ubuntu?"
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
linked_crates "$arch" > "$work/crates"
cargo metadata --locked --format-version 1 --filter-platform "$arch-unknown-linux-gnu" |
    jq -r --rawfile crates "$work/crates" '.packages[] | select(.source)
        | select("\(.name)@\(.version)" | IN($crates / "\n" | .[]))
        | [.name, .version, .license // "see below", (.manifest_path | rtrimstr("/Cargo.toml"))] | @tsv' |
    sort > "$work/list"
mkdir "$work/texts"
while IFS=$'\t' read -r name version _ dir; do
    found=
    for file in "$dir"/*; do
        [[ ${file##*/} =~ ^([Ll][Ii][Cc][Ee][Nn][CcSs][Ee]|UNLICENSE|COPY|NOTICE) ]] || continue
        found=1
        sum=$(sha256sum < "$file" | cut -d ' ' -f 1)
        # A text that several have is printed once.
        echo "$name $version, ${file##*/}" >> "$work/texts/$sum.of"
        cp "$file" "$work/texts/$sum"
    done
    [ -n "$found" ] || die "$name $version has no licence text in $dir; take another version, or another crate"
done < "$work/list"

line=$(printf '=%.0s' {1..80})
cat << END
flexvolume-lvm is under the Apache License 2.0. Its executable for $arch is static: this names
what is linked into it, and has the licence of each.

GNU C Library, glibc $GLIBC: LGPL-2.1-or-later.
    Who passes the executable on gives this file with it, and offers the library's source at the same
    place, or in writing for three years. That is Debian's source package glibc $GLIBC.
    You may change the library and link the driver with it: the driver's sources are public, and
    install/build.sh there links with the libc.a of the machine that it runs on.
libgcc and the startup files of GCC, $GCC: GPL-3.0-or-later WITH GCC-exception-3.1.
    The exception asks nothing of who passes the executable on.
Rust's standard library, $RUSTC: MIT OR Apache-2.0, and what it names below.
END
while IFS=$'\t' read -r name version license _; do echo "$name $version: $license"; done < "$work/list"
# In the order of the first that has each.
grep -H -m 1 '' "$work"/texts/*.of | sort -t : -k 2 | while IFS=: read -r of _; do
    printf '\n%s\n' "$line"
    cat "$of"
    printf '%s\n\n' "$line"
    cat "${of%.of}"
done
for file in "$STD_COPYRIGHT" "$LIBC_COPYRIGHT" "$LGPL"; do
    printf '\n%s\n%s\n%s\n\n' "$line" "${file##*/share/}" "$line"
    case $file in
        # Its tags and empty lines are left out.
        *.html) sed -e 's/<[^>]*>//g' -e "s/&#34;/\"/g; s/&#39;/'/g; s/&#60;/</g; s/&#62;/>/g; s/&#38;/\&/g" "$file" | grep -v '^ *$' ;;
        *) cat "$file" ;;
    esac
done
