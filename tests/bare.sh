# shellcheck shell=bash
# Sourced by tests/run.sh: what README prints under "Try it", on Debians that have nothing but what it asks for.

COMMIT=${COMMIT:-HEAD} # which is tried
BARE=                  # the top directory of a bare Debian
BARE_ENVIRONMENT=()
# What a few cases on real LVM need of the machine: filesystems, snapshots, thin pools, LUKS2, a broken disk.
BARE_CASES=(refusals::swap refusals::hidden refusals::thin refusals::snapshot refusals::damaged refusals::reduced
    lives::each_filesystem a_volume_lives_with_the_key_of_its_node unreadable::a_volume_with_one
    openers::a_writer_keeps)

# bare [whole]: as root on Debian 12, in a clone that belongs to somebody else, without HOME; and as a user with sudo
# on Debian 13, whose cache is elsewhere. Both in a path with a space. `whole` is all of tests/run.sh on both.
bare() {
    local ran=0 passed=0 root=(root env --unset=HOME) user=(person env HOME=/home/person "XDG_CACHE_HOME=/srv/a cache")
    need_root "to make a bare Debian"
    need "${RUST_TOOLS[@]}" debootstrap:debootstrap
    bare_debian bookworm nobody
    if [ "${1:-}" = whole ]; then
        bare_run 'tests/run.sh by root on Debian 12' "${root[@]}" tests/run.sh
    else
        bare_run 'quickstart on Debian 12' "${root[@]}" examples/quickstart.sh
        bare_run 'quickstart once more, without a network' "${root[@]}" unshare --net examples/quickstart.sh
        bare_run 'ten cases on Debian 12' "${root[@]}" tests/run.sh guest "${BARE_CASES[@]}"
    fi
    bare_test 'nothing new starts on Debian 12' nothing_new_starts bookworm
    as_root rm -rf "$BARE"
    bare_debian trixie person
    if [ "${1:-}" = whole ]; then
        bare_run 'tests/run.sh by a user on Debian 13' "${user[@]}" tests/run.sh
    else
        bare_run 'quickstart on Debian 13' "${user[@]}" examples/quickstart.sh
    fi
    bare_test 'nothing new starts on Debian 13' nothing_new_starts trixie
    as_root rm -rf "$BARE"
    echo "bare $ran $passed" >> "$TOP/counts"
}

# bare_test NAME COMMAND…
bare_test() {
    local name=$1 log=$DIR/bare.log
    shift
    say "bare: $name"
    ran=$((ran + 1))
    if timed bare "$@" > "$log" 2>&1 < /dev/null; then
        passed=$((passed + 1))
    else
        tail -n 60 "$log"
        failed "bare: $name"
    fi
}

# bare_run NAME USER COMMAND…: the same, of what USER runs there.
bare_run() {
    bare_test "$1" as_root env --ignore-environment "PATH=$PATH" tests/bare-root "$BARE" "$2" \
        env "${BARE_ENVIRONMENT[@]}" "${@:3}"
}

# bare_debian SUITE OWNER: makes BARE, with a clone of OWNER's and the Rust that runs here. The Debian is made once.
bare_debian() {
    local suite=$1 owner=$2 made=$CACHE/bare-$1 cargo=${CARGO_HOME:-$HOME/.cargo} clone
    BARE=$CACHE/bare/$suite
    (flock 9 && { [ -e "$made" ] || make_bare "$suite" "$made"; }) 9> "$made.lock"
    as_root rm -rf "$BARE"
    mkdir -p "$CACHE/bare"
    as_root cp -a "$made" "$BARE"
    # The inner shell expands these.
    # shellcheck disable=SC2016
    as_root sh -euc 'cd "$0"
        useradd --create-home --root "$0" --shell /bin/bash person
        echo "person ALL=(ALL) NOPASSWD: ALL" > etc/sudoers.d/person
        # sudo lowers the limit of a core to 0, and root of a container may be unable to raise it again.
        echo "Defaults rlimit_core=default" >> etc/sudoers.d/person
        mkdir -p "srv/a cache" usr/local/rust srv/cargo
        chown 1000:1000 "srv/a cache"
        cp -aL /etc/resolv.conf /etc/hosts etc/
        cp -aL /etc/ssl/certs/ca-certificates.crt etc/ssl/certs/ 2> /dev/null || true
        apt-config dump | grep "^Acquire::" | grep -v IndexTargets > etc/apt/apt.conf.d/99machine
        ln -sfn "$1" "$0.rust"
        for name in registry config config.toml; do [ ! -e "$2/$name" ] || cp -a "$2/$name" srv/cargo/; done
        chmod -R a+rwX srv/cargo' "$BARE" "$(rustc --print sysroot)" "$cargo"
    unoptimized "$BARE/srv"
    clone="$BARE/srv/a clone"
    as_root git -c safe.directory='*' -c advice.detachedHead=false -c init.defaultBranch=main clone --quiet . "$clone"
    as_root git -C "$clone" -c advice.detachedHead=false checkout --quiet "$(git rev-parse "$COMMIT")"
    as_root chown -R --reference="$BARE/home/person" "$clone"
    [ "$owner" = person ] || as_root chown -R 65534:65534 "$clone"
    mapfile -t BARE_ENVIRONMENT < <(env | grep -iE '^(https?_proxy|no_proxy|CARGO_(HTTP|NET|REGISTR|SOURCE)[A-Z_]*|SSL_CERT_FILE)=')
    BARE_ENVIRONMENT+=(CARGO_HOME=/srv/cargo
        PATH=/usr/local/rust/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin)
}

make_bare() {
    local mirror
    say "making a bare Debian $1 in $2"
    mirror=$(debian_mirror)
    as_root rm -rf "$2.new"
    as_root unshare --mount debootstrap --variant=minbase --include=ca-certificates,git,sudo \
        "$1" "$2.new" ${mirror:+"$mirror"} > "$2.log" 2>&1 || {
        tail -n 20 "$2.log"
        die "debootstrap made no bare Debian $1"
    }
    as_root mv "$2.new" "$2"
}

# Prints what starts at each boot of the Debian in a directory.
starts() { (cd "$1" && find etc/systemd etc/rc?.d -type l 2> /dev/null | sort); }

# LVM, udev and e2fsprogs are what the driver is about, and bring systemd and what they need.
nothing_new_starts() { # SUITE
    ! comm -13 <(starts "$CACHE/bare-$1") <(starts "$BARE") |
        grep -vE '/(S..|K..)?(lvm2|dm-event|blk-availability|e2scrub|udev|kmod|procps|getty@tty1|remote-fs|systemd-)' &&
        [ ! -e "$BARE/usr/lib/modules" ]
}
