# shellcheck shell=bash
# Sourced by tests/boot.sh: the files and the kernel of the Debian that SUITE names, for a guest that
# is Linux as a process.

# Those that SUITE names, the first with all tests. kubelet, the nodes that share a group and a node's life have
# this machine's own files, which are Debian 12's where changes are checked.
SUITES=()
FILES= # the top directory of a Debian; empty: this machine's own
PACKAGES=$(printf '%s\n' "${TEST_TOOLS[@]#*:}" jq user-mode-linux xfsprogs | sort -u | paste -sd ,)

# need_suites: makes the files of each Debian that SUITE names, once, and sets SUITES. To have newer packages, remove them from the cache.
need_suites() {
    local suite
    # shellcheck disable=SC2153 # The environment has it.
    read -r -a SUITES <<< "$SUITE"
    need debootstrap:debootstrap
    mkdir -p "$CACHE"
    for suite in "${SUITES[@]}"; do
        files_of "$suite"
        # Another run may be making it.
        (flock 9 && { [ -e "$FILES" ] || timed debootstrap make_suite "${suite%-tools}"; }) 9> "$FILES.lock"
        kernel_of "$suite"
        guest_works
    done
}

# files_of SUITE: from here on, guests have its files.
files_of() { FILES=$CACHE/debian-${1%-tools}-$(cksum <<< "$PACKAGES" | cut -d ' ' -f 1); }

# kernel_of SUITE: from here on, guests on its files have its own kernel, if that is one of the oldest on which the driver
# runs, or if KERNEL=own asks for it. Else, and as SUITE-tools, they have the newer one, on which all cases take two thirds
# of the time.
kernel_of() {
    UML=
    case $1${KERNEL:-} in
        bullseye | bookworm | *own) ;;
        *) need_newer_uml ;;
    esac
}

# Prints the mirror that this machine itself uses. Without one, debootstrap knows one.
debian_mirror() {
    apt-get indextargets --format "\$(REPO_URI)" 'Origin: Debian' 'Label: Debian' | sed -n 1p || true
}

make_suite() {
    local suite=$1 mirror
    say "making the files of Debian $suite in $FILES, which takes some minutes"
    mirror=$(debian_mirror)
    as_root rm -rf "$FILES.new"
    # What it mounts goes with its namespace, however it ends.
    as_root unshare --mount debootstrap --variant=minbase --include="$PACKAGES" \
        "$suite" "$FILES.new" ${mirror:+"$mirror"} > "$FILES.log" 2>&1 || {
        tail -n 20 "$FILES.log" "$FILES.new/debootstrap/debootstrap.log"
        die "debootstrap made no Debian $suite"
    }
    as_root mkdir -p "$FILES.new/lib/modules"
    as_root rm -rf "$FILES.new"/var/cache/apt "$FILES.new"/var/lib/apt/lists
    as_root mv "$FILES.new" "$FILES"
}

# on_suite SHARE COMMAND…: runs it as root in FILES, if that is set, where it sees SHARE
# too. The mounts go with the namespace.
on_suite() {
    local share=$1
    shift
    [ -n "$FILES" ] || {
        as_root "$@"
        return
    }
    # shellcheck disable=SC2016
    as_root unshare --mount bash -euc 'files=$0 share=$1 uml=$2
        mount -t tmpfs tmpfs "$files/tmp"
        mkdir -p "$files$share" "$files$uml"
        for dir in /proc /dev "$share" ${uml:+"$uml"}; do mount --rbind "$dir" "$files$dir"; done
        shift 2; exec chroot "$files" "$@"' "$FILES" "$share" "$UML" "$@"
}
