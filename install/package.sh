#!/usr/bin/env bash
# Makes the .deb and the .rpm: the same bytes every time, for the same sources, commit and tools.
#
#   install/package.sh ARCH EXECUTABLE OUT_DIR
#
# ARCH               x86_64 or aarch64
# EXECUTABLE         the driver for it, as `install/build.sh ARCH` builds it
# OUT_DIR            where flexvolume-lvm_VERSION-1_ARCH.deb and flexvolume-lvm-VERSION-1.ARCH.rpm go
#
# LICENSES           a file with the licences of all that is linked into EXECUTABLE, which goes into both
# MAINTAINER         `NAME <ADDRESS>`, who answers for the packages (default: what Cargo.toml says)
# SOURCE_DATE_EPOCH  the time of everything in them (default: the commit's)
#
# cargo-deb is installed once, into ~/.cache/flexvolume-lvm; rpmbuild with apt.
set -euo pipefail
umask 022
unset XZ_OPT XZ_DEFAULTS GZIP TAR_OPTIONS
start=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=tests/boot.sh
. tests/boot.sh

case $#${1:-} in
    3x86_64) machine=62 ;;
    3aarch64) machine=183 ;;
    *) usage install/package.sh "${1:-}" ;;
esac
of_cargo() { sed -n "s/^$1\$/\\1/p" Cargo.toml; }
MAINTAINER=${MAINTAINER:-$(of_cargo 'authors = \["\(.*\)"\]')}
from_start() { (cd "$start" && realpath "$1"); }
arch=$1 triple=$1-unknown-linux-gnu
driver=$(from_start "$2")
out=$(mkdir -p "$start" && cd "$start" && mkdir -p "$3" && cd "$3" && pwd)
[ -z "${LICENSES:-}" ] || LICENSES=$(from_start "$LICENSES")
# Byte 18 of an ELF file says which machine it is for.
[ "$(od -An -tu2 -j18 -N2 "$driver" | tr -d ' ')" = $machine ] || die "$2 is not for $arch"
# An executable for another machine does not run here.
said=$(grep -aom1 'flexvolume-lvm [0-9][0-9A-Za-z.+-]*' "$driver") || die "$2 is not this driver"
version=${said#* }
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2> /dev/null || stat -c %Y CHANGELOG.md)}
export SOURCE_DATE_EPOCH

need_rust
need xz:xz-utils rpmbuild:rpm dpkg-deb:dpkg
# Without its own xz, which takes longer to build than all the rest.
need_cargo_tool cargo-deb 3.8.0 --no-default-features
deb=$TOOL/cargo-deb

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cargo xtask "$work/pages"
# What Cargo.toml calls target/release.
export CARGO_TARGET_DIR=$work/target
release=$CARGO_TARGET_DIR/$triple/release files=$CARGO_TARGET_DIR/$triple/release/package
mkdir -p "$files"/{systemd,doc}
install "$driver" "$release/lvm"
mv "$work"/pages/* "$files/"
for unit in examples/monitoring/*.{service,timer}; do
    # The head says how to install it by hand.
    sed -e '1,/^\[/{/^#/d}' -e 's|/usr/local/sbin/|/usr/sbin/|' "$unit" > "$files/systemd/${unit##*/}"
done
install/pages.sh "$files/doc"
cp install/deb/copyright "$files/"
cat > "$files/doc/changelog.Debian" << END
flexvolume-lvm ($version-1) unstable; urgency=medium

  * See CHANGELOG.md.

 -- $MAINTAINER  $(LC_ALL=C date -u -R -d "@$SOURCE_DATE_EPOCH")
END
if [ -n "${LICENSES:-}" ]; then
    install -m 644 "$LICENSES" "$files/doc/licenses.txt"
    echo 'Comment: licenses.txt has the licences of all that is linked into the executable.' >> "$files/copyright"
fi
gzip -9 --no-name "$files"/man/*/* "$files/doc/changelog.Debian"
chmod -R a+rX "$files"

"$deb" --quiet --no-build --no-strip --locked --target "$triple" --deb-version "$version-1" \
    --maintainer "$MAINTAINER" --output "$out/" | tee "$work/deb"

# The files of the .deb, where other distributions have them.
tree=$work/tree share=$work/tree/usr/share
dpkg-deb --extract "$(cat "$work/deb")" "$tree"
mkdir -p "$tree/etc/default" "$share/licenses/flexvolume-lvm" "$share/zsh"
mv "$share/flexvolume-lvm/default" "$tree/etc/default/flexvolume-lvm"
mv "$share/zsh/vendor-completions" "$share/zsh/site-functions"
rm -r "$share/lintian" "$share/flexvolume-lvm" "$share"/doc/flexvolume-lvm/{copyright,changelog.Debian.gz}
for file in LICENSE licenses.txt; do
    [ -e "$share/doc/flexvolume-lvm/$file" ] || continue
    mv "$share/doc/flexvolume-lvm/$file" "$share/licenses/flexvolume-lvm/"
    ln -s "../../licenses/flexvolume-lvm/$file" "$share/doc/flexvolume-lvm/"
done
# As the .deb's description has it: a line that ends with a backslash goes on.
sed -n '/^extended-description = """/,/"""$/p' Cargo.toml | sed -e 1d -e 's/"""$//' |
    sed -e ':a' -e '/\\$/{N;s/\\\n//;ba' -e '}' | fold -s -w 78 | sed 's/ *$//' > "$work/text"
LC_ALL=C rpmbuild -bb --quiet --nodeps --target "$arch-linux" --buildroot "$work/buildroot" \
    --define "_topdir $work/rpm" --define "_rpmdir $out" --define '_rpmfilename %{NAME}-%{VERSION}-%{RELEASE}.%{ARCH}.rpm' \
    --define '_buildhost localhost' --define 'use_source_date_epoch_as_buildtime 1' \
    --define 'clamp_mtime_to_source_date_epoch 1' --define '_build_id_links none' --define '__os_install_post %{nil}' \
    --define 'debug_package %{nil}' --define '_binary_payload w9.gzdio' --define "here $PWD/install/rpm" --define "tree $tree" \
    --define "version $version" --define "homepage $(of_cargo 'homepage = "\(.*\)"')" --define "maintainer $MAINTAINER" \
    --define "summary $(of_cargo 'description = "\(.*\)"')" --define "text $work/text" install/rpm/flexvolume-lvm.spec > /dev/null
echo "$out/flexvolume-lvm-$version-1.$arch.rpm"
