# shellcheck shell=bash
# Sourced by tests/run.sh: the driver for aarch64, which qemu translates, process by process.

# What counts system calls or kills the driver at each would see qemu's, a file's limit is qemu's too, and the
# namespace has one user.
export TRANSLATED="--skip cost:: --skip kills:: --skip image:: --skip a_log_file_that_may_not_grow
    --skip around:: --skip only_a_process_of_the_hosts_root --skip set_user_id_bit"
# Programs for aarch64 (e_type and e_machine) go to qemu, which is opened now, with their own first argument.
export HANDLER=':qemu-aarch64:M:16:\x02\x00\xb7\x00:\xfe\xff\xff\xff:/usr/bin/qemu-aarch64:PF'

# aarch64: what needs no LVM. The tests are this machine's, and what they run is the driver for aarch64.
aarch64() {
    local own tests
    need qemu-aarch64:qemu-user
    DRIVER=$(timed 'aarch64 build' install/build.sh aarch64)
    [ -n "$DRIVER" ] || die "the driver did not build for aarch64"
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
