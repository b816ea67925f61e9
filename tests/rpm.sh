#!/usr/bin/env bash
# The rpm in a tree of its own, whose programs are busybox: rpm runs the package's scripts there.
#
#   tests/rpm.sh PACKAGES CASE    as root; PACKAGES has new/*.rpm, new/*.deb and old/*.rpm
#
# CASE is life (over another driver, upgraded with a pod's volume mounted, downgraded, erased), fails
# (nothing is changed, and it can be erased) or files (those of the .deb).
set -Eeuo pipefail
[ $# = 2 ] || {
    sed -n '2,/^set /s/^# \{0,1\}//p' "$0"
    exit 2
}
[ "${IN_NAMESPACE:-}" ] || IN_NAMESPACE=1 exec unshare --mount "$0" "$@"
trap 'echo "tests/rpm.sh, line $LINENO: $BASH_COMMAND"' ERR

old=$(echo "$1"/old/*.rpm) new=$(echo "$1"/new/*.rpm)
tree=$(mktemp -d --suffix=.flexvolume-lvm-rpm)
trap 'umount --recursive --lazy "$tree"; rmdir "$tree"' EXIT
mount -t tmpfs tmpfs "$tree"
mkdir -p "$tree"/{bin,dev,proc}
mount -t proc proc "$tree/proc"
mount --bind /dev "$tree/dev"
cp "$(command -v busybox)" "$tree/bin/"
chroot "$tree" /bin/busybox --install -s /bin

plugins=$tree/usr/libexec/kubernetes/kubelet-plugins/volume/exec
dir=$plugins/kubernetes.io~lvm
volume=$tree/var/lib/kubelet/pods/1-2/volumes/kubernetes.io~lvm/data

# What it needs is no package of this tree.
run() { rpm --root "$tree" --nodeps "$@" 2>&1 | tee "$tree/said"; }
said() { grep -qF -- "$1" "$tree/said" || { echo "it did not say: $1"; false; }; }
version() { chroot "$tree" "${1#"$tree"}" --version; }
another_driver() {
    mkdir -p "$dir"
    printf '#!/bin/sh\n%s\n' "$1" > "$dir/lvm"
    chmod 755 "$dir/lvm"
    cp "$dir/lvm" "$tree/another"
}

life() {
    local older newer defaults
    # shellcheck disable=SC2016
    another_driver '[ "$1" = init ] || exit 1; echo "{\"status\": \"Success\"}"'
    run --install "$old"
    said 'init says Success, attach = true'
    defaults=$tree/etc/default/flexvolume-lvm
    older=$(version "$dir/lvm")
    echo '# mine' >> "$dir/config.toml"
    cp "$dir/config.toml" "$tree/config"
    mkdir -p "$volume"
    mount -t tmpfs tmpfs "$volume"

    run --upgrade "$new"
    newer=$(version "$dir/lvm")
    [ "$newer" != "$older" ]
    [ "$(version "$tree/usr/sbin/flexvolume-lvm")" = "$newer" ]
    cmp "$dir/config.toml" "$tree/config"
    if run --erase flexvolume-lvm; then false; fi
    said 'volumes of kubernetes.io/lvm are mounted; delete their pods first'
    rpm --root "$tree" --query flexvolume-lvm
    [ "$(version "$dir/lvm")" = "$newer" ]

    run --upgrade --oldpackage "$old"
    [ "$(version "$dir/lvm")" = "$older" ]
    umount "$volume"
    mkdir -p "$tree/metrics"
    touch "$tree/metrics/flexvolume-lvm.prom"
    echo 'METRICS_DIR=/metrics' >> "$defaults"
    run --erase flexvolume-lvm
    [ -z "$(ls "$tree/metrics")" ]
    cmp "$dir/lvm" "$tree/another"
    cmp "$tree/var/lib/flexvolume-lvm/config.toml" "$tree/config"
    rm "$defaults.rpmsave"
    [ -z "$(find "$tree/etc" "$tree/usr" -name 'flexvolume*')" ]
    # The next one takes it.
    run --install "$new"
    cmp "$dir/config.toml" "$tree/config"
}

fails() {
    another_driver 'exit 1'
    run --install "$new" || true
    said 'cannot be asked for its mode'
    said 'correct that, then: /usr/sbin/flexvolume-lvm install'
    cmp "$dir/lvm" "$tree/another"
    run --erase flexvolume-lvm
    said 'is not this driver or does not run'
    cmp "$dir/lvm" "$tree/another"
}

files() {
    local deb=$tree/deb shell
    run --install --noscripts "$new"
    dpkg-deb --extract "$1"/new/*.deb "$deb"
    # Where these two have their own ways.
    mkdir -p "$deb/etc/default"
    mv "$deb/usr/share/zsh/vendor-completions" "$deb/usr/share/zsh/site-functions"
    mv "$deb/usr/share/flexvolume-lvm/default" "$deb/etc/default/flexvolume-lvm"
    rm -r "$deb/usr/share/lintian" "$deb/usr/share/flexvolume-lvm" "$deb"/usr/share/doc/flexvolume-lvm/c*
    for file in LICENSE licenses.txt; do
        [ ! -L "$tree/usr/share/doc/flexvolume-lvm/$file" ] || mv -f "$tree/usr/share/licenses/flexvolume-lvm/$file" "$tree/usr/share/doc/flexvolume-lvm/"
    done
    rm -r "$tree/usr/share/licenses"
    for top in etc usr; do diff -r "$deb/$top" "$tree/$top"; done
    for page in man8/flexvolume-lvm-status.8 man5/flexvolume-lvm.toml.5; do [ -e "$deb/usr/share/man/$page.gz" ]; done
    for shell in bash-completion fish zsh; do
        grep -rqF flexvolume-lvm "$deb/usr/share/$shell"
    done
    grep -qF '=/usr/sbin/flexvolume-lvm metrics' "$deb/usr/lib/systemd/system/flexvolume-lvm-metrics.service"
    # Whose summary is not all that it says of itself.
    [ "$(rpm -qp --queryformat '%{DESCRIPTION}' "$new" | wc -l)" -gt 3 ]
}

"$2" "$1"
