# shellcheck shell=bash
# Sourced by tests/run.sh: real LVM in a guest where SELinux is enforcing, with Debian's policy.

# selinux [CASE…]: those cases that are ignored elsewhere, or others.
selinux() {
    local SUITE=bookworm SUITES FILES='' UML='' PACKAGES=$PACKAGES,policycoreutils,selinux-policy-default
    local part=$DIR/selinux names image
    prepared "$part"
    [ $# -gt 0 ] || set -- selinux::
    mapfile -t names < <("$part/guest" --list "$@" | sed -n 's/: test$//p')
    truncate -s 4G "$part/disk" "$part/power"
    image=$FILES-$(cksum < tests/selinux-init | cut -d ' ' -f 1).ext4
    (flock 9 && { [ -e "$image" ] || make_labelled "$image"; }) 9> "$FILES.lock"
    cp --sparse=always "$image" "$part/root"
    step selinux enforcing "$part" "$part/guest --test-threads=1 --include-ignored --exact ${names[*]}" |
        tee "$part/log"
    count selinux "$part/log" "$part/versions"
}

# enforcing PART COMMAND: as `in_guest`, with PART/root as the guest's files.
enforcing() {
    local UML_OPTIONS=("ubdc=$1/root" root=/dev/ubdc rootfstype=ext4 rootflags=errors=panic rw init=/selinux-init
        lsm=selinux selinux=1 log_buf_len=4M)
    in_guest "$1" "$2" || {
        console "$1"
        return 1
    }
}

# make_labelled IMAGE: an ext4 of FILES, where each file has its label.
make_labelled() {
    local image=$1 part=$DIR/labelled UML_OPTIONS
    say "labelling the files of a node with SELinux"
    mkdir "$part"
    rm -f "$FILES"-*.ext4
    as_root install tests/selinux-init "$FILES/"
    truncate -s 2G "$part/new"
    as_root mke2fs -q -t ext4 -d "$FILES" "$part/new"
    UML_OPTIONS=("ubdc=$part/new" root=/dev/ubdc rootfstype=ext4 rootflags=errors=panic rw init=/selinux-init)
    boot "$part" 300 '' || {
        console "$part"
        die "no file was labelled"
    }
    mv "$part/new" "$image"
}
