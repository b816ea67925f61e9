# shellcheck shell=bash
# Sourced by tests/boot.sh: a guest that is Linux as a process of this machine (user-mode Linux).
# It has a kernel of its own with device-mapper, and needs no KVM. It has one processor.

IN_GUEST=() # directories of `unpack`, which a guest on this machine's own files sees as if they were installed
UML= # the directory that has its kernel and modules; empty: where the package put them

# Sets UML to that of Debian's next release, which brings its own C library, if it can be had and works here: since
# Linux 6.16 a process starts in less than half the time.
need_newer_uml() {
    local dir=$CACHE/uml-forky new=$CACHE/uml-forky.new libraries=usr/lib/x86_64-linux-gnu apt deb
    if [ ! -e "$dir" ]; then
        say "getting a newer user-mode Linux into $dir"
        rm -rf "$new"
        mkdir -p "$new" "$DIR/apt"/{lists,archives}/partial
        echo "deb $(debian_mirror) forky main" > "$DIR/apt/sources"
        apt=(apt-get -qq -o Dir::Etc::SourceList="$DIR/apt/sources" -o Dir::Etc::SourceParts=- -o Dir::Cache="$DIR/apt"
            -o Dir::State::Lists="$DIR/apt/lists" -o Acquire::Languages=none -o APT::Sandbox::User=)
        (cd "$DIR/apt" && "${apt[@]}" update && "${apt[@]}" download user-mode-linux libc6) || return 0
        for deb in "$DIR"/apt/*.deb; do dpkg --extract "$deb" "$new"; done
        patchelf --set-interpreter "$dir/$libraries/ld-linux-x86-64.so.2" --force-rpath --set-rpath "$dir/$libraries" \
            "$new/usr/bin/linux.uml"
        mv "$new" "$dir"
    fi
    UML=$dir
    # What is wrong with it is nobody's fault.
    (UNDER_WAY="" guest_works) 2> /dev/null || UML=
}

# guest_works: ends this script if no guest comes up that has what the tests need, and says why. That one came up is
# remembered, for this kernel and processor and what is booted on them.
guest_works() {
    local trial answers=$CACHE/guests-that-work answer
    answer=$({
        uname -srv
        grep -m 1 ^flags /proc/cpuinfo
        stat --dereference --format '%n %s %y' "${UML:-$FILES}/usr/bin/linux.uml"
        cat tests/uml-init tests/uml-ptrace.c
    } | sha256sum | cut -d ' ' -f 1)
    ! grep -sqx "$answer" "$answers" || return 0
    trial=$(mktemp -d -p "$DIR")
    say "trying whether a guest works here${FILES:+ on the files of ${FILES##*/}}"
    # The guest expands these.
    # shellcheck disable=SC2016
    boot "$trial" 600 'echo "it does: Linux $(uname -r), $(lvm version | sed -n "s/^ *LVM version: */LVM /p")" &&
        dmsetup version > /dev/null' || {
        kernel_said "$trial" | tail -n 20 >&2
        die "no guest can start here: $(why_not "$trial")"
    }
    echo "$answer" >> "$answers"
}

# kernel_said FILES: what the kernel of a guest said that is not said at each boot or by each test.
kernel_said() {
    sed -E '/^(Core dump|\tsoft|\thard|Checking|Adding|SELinux:|mmapper_init|Failed to initialize ubd|epollctl|This architecture)/d
        /WRITE_ZEROES|supports timestamps until|sysrq: Power Off|reboot: Power down|^ *\[<|^$/d' "$1/console"
}

# why_not FILES: prints why a guest that did not come up could not start.
why_not() {
    cat "$1/cannot" 2> /dev/null || kernel_said "$1" | grep --text -E 'errno|panic|error|failed|denied' | sed 1q ||
        echo "linux.uml ended without a word"
}

# console FILES: what the kernel of a guest that failed has to say; at last, whether the guest could not even start.
console() {
    local said
    said=$(kernel_said "$1" | tail -n 20)
    [ -z "$said" ] || {
        say "the guest's kernel"
        printf '%s\n' "$said"
    }
    [ -e "$1/up" ] || echo "the guest cannot start: $(why_not "$1")"
}

# Prints the numbers of the processors that may be used here.
processors() {
    local first last
    sed -n 's/^Cpus_allowed_list:\s*//p' /proc/self/status | tr , '\n' |
        while IFS=- read -r first last; do seq "$first" "${last:-$first}"; done
}

# Sets PROCESSOR to that with the fewest guests; each holds a file while it runs, as PLACE. A guest
# has one processor, and its processes wait for each other at every system call: where one of them
# has to wake another processor for that, the guest is several times slower.
take_processor() {
    local all slot
    mapfile -t all < <(processors)
    mkdir -p "$CACHE"
    for ((slot = 0; ; slot++)); do
        exec {PLACE}> "$CACHE/guest-$slot"
        ! flock --nonblock "$PLACE" || break
        exec {PLACE}>&-
    done
    PROCESSOR=${all[slot % ${#all[@]}]}
}

# Prints the path of what lets older kernels run on processors that have more registers than they know. It is in DIR,
# which the guest shares.
whole_registers() {
    local library
    library=$CACHE/uml-ptrace-$(cksum < tests/uml-ptrace.c | cut -d ' ' -f 1).so
    if [ ! -e "$library" ]; then
        mkdir -p "$CACHE"
        cc -O2 -Wall -Werror -shared -fPIC -o "$library.$BASHPID" tests/uml-ptrace.c >&2 || return
        mv "$library.$BASHPID" "$library"
    fi
    install "$library" "$1/ptrace.so"
    echo "$1/ptrace.so"
}

# memory_dir DIR: prints where the file of a guest's memory goes: /dev/shm, or DIR where that is as small as in a
# container, which is slower. A guest that finds no space there is ended by SIGBUS.
memory_dir() {
    local free
    free=$(df --output=avail --block-size=1M /dev/shm 2> /dev/null | tail -n 1) || free=0
    if [ "$free" -ge 1024 ]; then echo /dev/shm; else echo "$1"; fi
}

# boot DIR SECONDS COMMAND [FILE OF A DISK…]: runs COMMAND in a guest that shares DIR, prints what
# it prints, and ends with its status. A guest that prints nothing for so many seconds is stopped. The kernel's
# messages are in DIR/console, or in a directory below DIR that BOOT_FILES names: guests that run at once and share one
# need that. The disks are /dev/vda and so on, and `cut_power` ends the guest as if its plug had been pulled.
boot() {
    local dir=$1 seconds=$2 file disks=() letters=abcd files=${BOOT_FILES:-$1} consoles=('con0=null,fd:2') preload= unpacked=
    echo "${STEP:-}" >> "${BOOTS:-/dev/null}"
    # It would start anew instead of `b`.
    printf 'cut_power() { echo o > /proc/sysrq-trigger; sleep 600; }\n%s\n' "$3" > "$files/command"
    rm -f "$files"/{status,up,cannot}
    shift 3
    for file in "$@"; do
        disks+=("ubd${letters:${#disks[@]}:1}=$file")
    done
    install tests/uml-init "$files/init"
    [ -n "$UML" ] || preload=$(whole_registers "$files")
    [ -n "$FILES" ] || [ ${#IN_GUEST[@]} = 0 ] || unpacked=$(printf '%s:' "${IN_GUEST[@]}")
    # Where the kernel's messages are else, the shell is: see tests/guest/lab/failure.rs.
    : > "$files/console"
    [ -z "${KEEP:-}" ] || consoles=('con0=null' 'con2=fd:0,fd:2')
    take_processor
    # Its memory is a file, of which only what was used takes space. Since Linux 6.16 seccomp is faster. LVM looks at each
    # file in /dev: those of 256 old terminals and of loop devices without use are half of its system calls.
    {
        taskset --cpu-list --pid "$PROCESSOR" "$BASHPID" > /dev/null
        # The inner shell expands these.
        # shellcheck disable=SC2016
        on_suite "$dir" env TMPDIR="$(memory_dir "$files")" \
            sh -c 'echo $$ > "$0"; exec timeout '"${KEEP:+--foreground}"' --kill-after=10 0 env "$@"' "$files/pid" \
            ${preload:+LD_PRELOAD="$preload"} "$UML/usr/bin/linux.uml" mem=3G seccomp=auto pty.legacy_count=0 \
            loop.max_loop=0 root=/dev/root rootfstype=hostfs rootflags=/ ro init="$files/init" share="$dir" \
            files="$files" modules="\"$UML/usr/lib/uml/modules\"" ${unpacked:+unpacked="\"$unpacked\""} \
            "${disks[@]}" ${UML_OPTIONS[@]+"${UML_OPTIONS[@]}"} \
            "${consoles[@]}" con1=null,fd:1 con=null console=tty0 loglevel=5
    } < "${KEEP:-/dev/null}" 2> "${KEEP:-$files/console}" | until_silent "$seconds" "$files/pid" || true
    exec {PLACE}>&-
    return "$(cat "$files/status" 2> /dev/null || echo 1)"
}
