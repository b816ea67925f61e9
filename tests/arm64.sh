# shellcheck shell=bash
# Sourced by tests/run.sh: the driver for aarch64. Without LVM qemu translates it, process by process; with
# LVM it runs in a guest that is an emulated machine of Debian arm64.

# The life of a volume with each filesystem and mode, volumes made on demand, and growth.
ON_ARM64=(lives:: creation:: growth::)

# What the runner below would install while others run.
need_aarch64() {
    need qemu-aarch64:qemu-user
    [ -e /usr/aarch64-linux-gnu/lib/libc.a ] || install_packages gcc-aarch64-linux-gnu libc6-dev-arm64-cross
}

build_arm64() {
    DRIVER=$(install/build.sh aarch64)
    [ -n "$DRIVER" ] || die "the driver did not build for aarch64"
}

# What counts system calls or kills the driver at each would see qemu's, a file's limit is qemu's too, and the
# namespace has one user.
export TRANSLATED="--skip cost:: --skip kills:: --skip image:: --skip a_log_file_that_may_not_grow
    --skip the_executable_of_another_user --skip around:: --skip what_is_not_roots_own --skip set_user_id_bit"
# Programs for aarch64 (e_type and e_machine) go to qemu, which is opened now, with their own first argument.
export HANDLER=':qemu-aarch64:M:16:\x02\x00\xb7\x00:\xfe\xff\xff\xff:/usr/bin/qemu-aarch64:PF'

# aarch64: what needs no LVM. The tests are this machine's, and what they run is the driver for aarch64.
aarch64() {
    local own tests
    need_aarch64
    build_arm64
    step "executable for aarch64" one_static_executable AArch64
    own=$(artifact --bin lvm)
    mapfile -t tests < <(for name in cli install superblocks; do artifact --test "$name"; done)
    export DRIVER
    step aarch64 translated "$own" "${tests[@]}"
    count aarch64 "$DIR/aarch64.log"
}

# translated OWN TEST…: in a namespace, where $DRIVER stands in the place of the executable that the tests know as
# their own, and the kernel hands it to qemu.
translated() {
    # shellcheck disable=SC2016
    unshare --user --map-root-user --mount bash -uc 'status=0 handlers=/proc/sys/fs/binfmt_misc
        [ -e $handlers/qemu-aarch64 ] || {
            mount -t binfmt_misc binfmt_misc $handlers && printf %s "$HANDLER" > $handlers/register
        } || {
            echo "Linux before 6.7 has no handlers of a namespace; install binfmt-support"
            exit 1
        }
        mount --bind "$DRIVER" "$0" || exit
        for test in "$@"; do "$test" --quiet $TRANSLATED || status=1; done
        exit $status' "$@" 2>&1 | tee "$DIR/aarch64.log"
}

# need_arm64: an emulator and, once, the files of the newest stable Debian with their kernel. They are unpacked and
# not installed: nothing of arm64 has to run here for that.
need_arm64() {
    local packages="btrfs-progs busybox-static dosfstools e2fsprogs fdisk hostname iproute2 kmod"
    packages+=" linux-image-cloud-arm64 lvm2 mount procps strace thin-provisioning-tools udev util-linux xfsprogs"
    need qemu-system-aarch64:qemu-system-arm qemu-aarch64:qemu-user cpio:cpio debootstrap:debootstrap
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
# shellcheck disable=SC2034 # EMULATOR: `named` runs the tests with it.
arm64() {
    local MACHINE=arm64 FILES='' GUEST_LIMIT=$((GUEST_LIMIT * 5)) EMULATOR=qemu-aarch64 tests all
    need_arm64
    build_arm64
    tests=$(install/build.sh aarch64 --test guest)
    [ -n "$tests" ] || die "the tests for the guest did not build"
    install "$tests" "$DIR/guest"
    install "$DRIVER" "$DIR/lvm"
    [ $# -gt 0 ] || set -- "${ON_ARM64[@]}"
    mapfile -t all < <(named "$@")
    half arm64-1.1 "${all[@]}"
    cat "$DIR"/arm64-1.1/*.log > "$DIR/arm64.log"
    count arm64 "$DIR/arm64.log" "$DIR/arm64-1.1/versions"
}
