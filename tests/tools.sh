# shellcheck shell=bash
# Sourced by tests/boot.sh: which tools a build, a guest and the tests need.

# What every build needs: it brings the C library to link with.
RUST_TOOLS=(cc:g++)

# What every guest needs on this machine, whose files it has.
GUEST_TOOLS=(lvs:lvm2 mkfs.ext4:e2fsprogs udevadm:udev lsblk:util-linux mount:mount modprobe:kmod cryptsetup:cryptsetup-bin
    ip:iproute2 hostname:hostname pkill:procps)
# The same for the tests.
TEST_TOOLS=("${GUEST_TOOLS[@]}" thin_check:thin-provisioning-tools mkfs.btrfs:btrfs-progs busybox:busybox-static
    mkfs.vfat:dosfstools sfdisk:fdisk keyctl:keyutils strace:strace)
# For tests/run.sh itself.
RUN_TOOLS=(jq:jq patchelf:patchelf pkill:procps)

# need_guest COMMAND:PACKAGE…: a guest that has these commands.
need_guest() {
    [ "$(uname -m)" = x86_64 ] || die "the guest is known to work on x86_64 only, not on $(uname -m)"
    need_root "to boot a guest, which sees all files of this machine"
    # Only Debian has user-mode Linux: elsewhere a guest has Debian's files and kernel.
    [ -n "${SUITE:-}" ] || is_here linux.uml || grep -qx 'ID="\?debian"\?' /etc/os-release || SUITE=bookworm
    if [ -n "${SUITE:-}" ]; then
        need "${RUST_TOOLS[@]}" "${RUN_TOOLS[@]}" debootstrap:debootstrap
    else
        need "${RUST_TOOLS[@]}" linux.uml:user-mode-linux "$@"
    fi
}

# need_tests_guest [COMMAND:PACKAGE…]: the same for the tests, and more commands for this machine. Looks whether a guest
# works.
# shellcheck disable=SC2120
need_tests_guest() {
    need_guest "${TEST_TOOLS[@]}" "${RUN_TOOLS[@]}" "$@"
    if [ -n "${SUITE:-}" ]; then
        need_suites
        return
    fi
    UNPACKED=()
    need_xfs
    IN_GUEST=("${UNPACKED[@]}")
    guest_works
}

# Debian's package has a timer since Debian 13.
need_xfs() {
    case $(debian) in
        bullseye | bookworm) need mkfs.xfs:xfsprogs ;;
        *) need_unpacked mkfs.xfs:xfsprogs ;;
    esac
}

# The filesystems of others, for the cases of `data/contents.rs`. No service or timer of their packages may start here.
need_formats() {
    local dir
    dir=$CACHE/formats-$(debian)
    unpack "$dir" f2fs-tools jfsutils reiserfsprogs ntfs-3g exfatprogs nilfs-tools udftools ocfs2-tools gfs2-utils \
        squashfs-tools genisoimage erofs-utils
    [[ " ${IN_GUEST[*]} " == *" $dir "* ]] || IN_GUEST+=("$dir")
}

# What the tests of the host run, beside Rust.
HOST_TOOLS=(valgrind:valgrind zsh:zsh mandoc:mandoc troff:groff-base strace:strace mkfs.ext4:e2fsprogs
    mkfs.btrfs:btrfs-progs ssh-keygen:openssh-client)

need_host() {
    need "${RUST_TOOLS[@]}" "${HOST_TOOLS[@]}"
    local mends
    need_root "to run the tests, since the driver works for root only"
    mends=$(mends_namespaces as_root setpriv --reuid=65534 --regid=65534 --clear-groups)
    [ -z "$mends" ] || die "no user can make a user namespace here, which tests need: $mends"
    need_xfs
    # Another package than man-db has a man, too. fish depends on it.
    need_unpacked promtool:prometheus mandb:man-db fish:fish systemd-analyze:systemd
}

# What shares a volume group between nodes: its daemons would start here.
need_lockd() {
    LOCKD=$CACHE/lockd-$(lvs --version | sed -n 's/.*LVM version: *\([0-9.]*\).*/\1/p')
    unpack "$LOCKD" lvm2-lockd sanlock
}

# Sets MSRV to the oldest Rust that will do.
need_rust() {
    is_here cargo || [ -z "${SUDO_USER:-}" ] ||
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
