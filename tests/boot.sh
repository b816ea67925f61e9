# shellcheck shell=bash
# Sourced by what boots a guest: installs what is missing, and boots a guest kernel on this machine's
# own files. Nothing that the guest does stays here, except what it writes into the one directory
# that it shares.
# shellcheck source=tests/uml.sh
. tests/uml.sh
# shellcheck source=tests/suite.sh
. tests/suite.sh

CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/flexvolume-lvm

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

# usage SCRIPT [WORD]: prints the head of a script and ends, well if the word asks for that.
usage() {
    sed -n '2,/^set /s/^# \{0,1\}//p' "$1"
    [[ ${2:-} == --help || ${2:-} == -h ]] && exit
    exit 2
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

# zizmor, which audits workflows, in a directory of its own: sets ZIZMOR.
need_zizmor() {
    local version=1.32.0 venv
    venv=$CACHE/venv-zizmor-$version
    ZIZMOR=$venv/bin/zizmor
    [ ! -x "$ZIZMOR" ] || return 0
    say "installing zizmor $version into $venv"
    python3 -c 'import venv, ensurepip' 2> /dev/null || need python3-venv:python3-venv
    rm -rf "$venv"
    mkdir -p "$CACHE"
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check "zizmor==$version"
}

# A guest that sees this machine's files has what is installed here.
GUEST_TOOLS=(lvs:lvm2 thin_check:thin-provisioning-tools mkfs.ext4:e2fsprogs mkfs.xfs:xfsprogs
    mkfs.btrfs:btrfs-progs udevadm:udev lsblk:util-linux modprobe:kmod busybox:busybox-static
    mkfs.vfat:dosfstools sfdisk:fdisk cryptsetup:cryptsetup-bin keyctl:keyutils jq:jq patchelf:patchelf)

# Everything that a guest needs.
need_guest() {
    [ "$(uname -m)" = x86_64 ] || die "the guest is known to work on x86_64 only, not on $(uname -m)"
    # Ubuntu has no user-mode Linux: there a guest has Debian's files and kernel, and jq for the pages.
    [ -n "${SUITE:-}" ] || have_uml || SUITE=bookworm PACKAGES+=,jq
    if [ -n "${SUITE:-}" ]; then
        need_suites
    else
        need "${GUEST_TOOLS[@]}"
        uml_works || die "user-mode Linux does not work here; remove $CACHE/uml-* to try again"
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
