# shellcheck shell=bash
# Sourced by tests/run.sh: the driver for aarch64. Without LVM qemu translates it, process by process; with
# LVM it runs in a guest that is an emulated machine of Debian arm64.

# The life of a volume with each filesystem, blank or not, growth, thin pools, and how calls order their steps.
ON_ARM64=(lives:: creation:: growth:: order::)

# build_arm64 [OPTION OF CARGO…]: prints the path of what was built.
build_arm64() {
    install/build.sh aarch64 "$@" | tail -n 1
}

# What counts system calls or kills the driver at each would see qemu's, a file's limit is qemu's too, and the
# namespace has one user.
TRANSLATED=(--skip cost:: --skip kills:: --skip image:: --skip a_log_file_that_may_not_grow
    --skip the_executable_of_another_user)

# aarch64: what needs no LVM. The tests are this machine's. In a namespace, what they run is the driver for aarch64,
# and the kernel hands that to qemu.
aarch64() {
    local own tests
    need qemu-aarch64-static:qemu-user-static
    DRIVER=$(build_arm64)
    step "executable for aarch64" one_static_executable AArch64
    own=$(artifact --bin lvm)
    tests=$(for name in cli install hangs superblocks; do artifact --test "$name"; done)
    # shellcheck disable=SC2016,SC2086
    step aarch64 logged "$DIR/aarch64.log" unshare --user --map-root-user --mount bash -euc '
        own=$0 driver=$1 tests=$2 status=0; shift 2
        handlers=/proc/sys/fs/binfmt_misc
        [ -e $handlers/qemu-aarch64 ] || { mount -t binfmt_misc binfmt_misc $handlers && printf %s \
            ":qemu-aarch64:M::\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\xb7:\xff\xff\xff\xff\xff\xff\xff\0\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff:$(command -v qemu-aarch64-static):PF" \
            > $handlers/register; } ||
            { echo "Linux before 6.7 runs no aarch64 here; install binfmt-support, which tells it how"; exit 1; }
        mount --bind "$driver" "$own"
        for test in $tests; do "$test" --quiet "$@" || status=1; done
        exit $status' "$own" "$DRIVER" "$tests" "${TRANSLATED[@]}"
    count aarch64 "$DIR/aarch64.log"
}

# need_arm64: an emulator and, once, the files of the newest stable Debian with their kernel. They are unpacked and
# not installed: nothing of arm64 has to run here for that.
need_arm64() {
    local packages="btrfs-progs busybox-static dosfstools e2fsprogs fdisk hostname iproute2 kmod"
    packages+=" linux-image-cloud-arm64 lvm2 mount procps strace thin-provisioning-tools udev util-linux xfsprogs"
    need qemu-system-aarch64:qemu-system-arm qemu-aarch64-static:qemu-user-static cpio:cpio debootstrap:debootstrap
    files_of arm64
    mkdir -p "$CACHE"
    (flock 9 && { [ -e "$FILES" ] || make_arm64 "$packages"; }) 9> "$FILES.lock"
}

make_arm64() {
    local mirror new=$FILES.new
    say "making the files of Debian ${SUITES[0]} for arm64 in $FILES, which takes some minutes"
    mirror=$(debian_mirror)
    as_root rm -rf "$new"
    mkdir "$new"
    as_root unshare --mount debootstrap --foreign --arch=arm64 --variant=minbase --include="${1// /,}" \
        "${SUITES[0]}" "$new/root" ${mirror:+"$mirror"} > "$FILES.log" 2>&1 || {
        tail -n 20 "$FILES.log"
        die "debootstrap made no Debian for arm64"
    }
    # shellcheck disable=SC2016
    as_root bash -euc 'cd "$0/root"
        for deb in var/cache/apt/archives/*.deb; do dpkg-deb --extract "$deb" .; done
        for file in passwd group; do cp "usr/share/base-passwd/$file.master" "etc/$file"; done
        ln -sfn /proc/self/mounts etc/mtab
        rm -rf proc debootstrap usr/share/{doc,man,locale,info,zoneinfo} var/cache/apt var/lib/apt
        mkdir proc
        depmod --basedir . "$(ls usr/lib/modules)"
        mv boot/vmlinuz-* ../vmlinuz
        rm -r boot
        find . -print0 | cpio --quiet --null --create --format=newc > ../files
        rm -r "$0/root"' "$new"
    as_root mv "$new" "$FILES"
}

# boot_arm64 DIR SECONDS COMMAND [FILE OF A DISK…]: the same as boot. All files of the guest are in its memory,
# with a copy of DIR, of which what is new comes back at the end.
boot_arm64() {
    local dir=$1 seconds=$2 files=${BOOT_FILES:-$1} file drives=() status=0 own
    printf 'cut_power() { echo b > /proc/sysrq-trigger; sleep 600; }\n%s\n' "$3" > "$files/command"
    shift 3
    for file in "$@"; do
        drives+=(-drive "file=$file,if=virtio,format=raw,cache=unsafe")
    done
    rm -f "$files/status"
    own=$(mktemp -d -p "$DIR")
    install -D tests/arm64-init "$own/root/init"
    mkdir -p "$own/root$dir"
    find "$dir" -mindepth 1 -maxdepth 1 -type f ! -name disk ! -name power -exec cp {} "$own/root$dir" \;
    {
        cat "$FILES/files"
        (cd "$own/root" && find . -print0 | cpio --quiet --null --create --format=newc)
    } > "$own/initrd"
    # The pipe is needed: qemu opens what it writes to anew, and would overwrite a file.
    timeout --kill-after=10 "$seconds" qemu-system-aarch64 -machine virt -cpu cortex-a57 -smp 2 -m 3G \
        -nodefaults -display none -no-reboot -kernel "$FILES/vmlinuz" -initrd "$own/initrd" \
        -append "console=ttyAMA0 loglevel=5 panic=-1 share=$dir files=$files" -serial "file:$files/console" \
        -device virtio-serial-pci -chardev stdio,id=out,signal=off -device virtconsole,chardev=out \
        -chardev "file,id=back,path=$own/back" -device virtserialport,chardev=back,name=back \
        "${drives[@]}" < /dev/null | cat || status=$?
    [ "$status" != 124 ] || echo "the guest did not end within $seconds seconds, and was stopped"
    tar -C "$files" -xf "$own/back" 2> /dev/null || true
    rm -r "$own"
    return "$(cat "$files/status" 2> /dev/null || echo 1)"
}

# arm64 [CASE…]: tests on real LVM, on an emulated machine.
arm64() {
    local MACHINE=arm64 FILES='' GUEST_LIMIT=$((GUEST_LIMIT * 5)) EMULATOR=qemu-aarch64-static tests all
    need_arm64
    DRIVER=$(build_arm64)
    tests=$(build_arm64 --test guest)
    [ -n "$tests" ] || die "the tests for the guest did not build"
    install "$tests" "$DIR/guest"
    install "$DRIVER" "$DIR/lvm"
    [ $# -gt 0 ] || set -- "${ON_ARM64[@]}"
    mapfile -t all < <(named "$@")
    half arm64-1.1 "${all[@]}"
    cat "$DIR"/arm64-1.1/*.log > "$DIR/arm64.log"
    count arm64 "$DIR/arm64.log" "$DIR/arm64-1.1/versions"
}
