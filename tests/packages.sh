# shellcheck shell=bash
# Sourced by tests/run.sh: the packages of this driver, and of one that says that it is older. What dpkg does with
# them on each Debian is in tests/guest/people/packages.rs.

# need_packages: makes them once, in packages/new and packages/old of DIR. OLDER names the older driver.
need_packages() {
    local version older
    [ ! -e "$DIR/packages" ] || return 0
    say "making packages"
    version=$("$DRIVER" --version)
    version=${version#flexvolume-lvm }
    if [ -n "${OLDER:-}" ]; then
        install "$OLDER" "$DIR/older"
    else
        # As long as this one: it is written over it.
        older=0.1.$(printf "%0$((${#version} - 4))d" 0)
        LC_ALL=C sed "s/${version//./\\.}/$older/g" "$DRIVER" > "$DIR/older"
        chmod +x "$DIR/older"
    fi
    mkdir "$DIR/packages.new"
    { install/package.sh "$(uname -m)" "$DRIVER" "$DIR/packages.new/new" &&
        install/package.sh "$(uname -m)" "$DIR/older" "$DIR/packages.new/old"; } ||
        die "the packages could not be made"
    mv "$DIR/packages.new" "$DIR/packages"
}

# The linters, and rpm with its scripts in a tree of its own.
packages() {
    local case passed=0 cases=(lintian_says_nothing rpmlint_says_nothing made_again_they_are_the_same
        "in_a_tree files" "in_a_tree life" "in_a_tree fails")
    need lintian:lintian rpm:rpm rpmlint:rpmlint busybox:busybox-static
    need_packages
    for case in "${cases[@]}"; do
        say "packages: $case"
        # shellcheck disable=SC2086
        if $case > "$DIR/package.log" 2>&1; then
            passed=$((passed + 1))
        else
            cat "$DIR/package.log"
            failed "packages: $case"
        fi
    done
    echo "packages ${#cases[@]} $passed" >> "$DIR/counts"
}

# Its versions have two names for one thing, and each executable other bytes, so that an override may find
# nothing.
lintian_says_nothing() {
    lintian --allow-root --pedantic --display-info --tag-display-limit 0 "$DIR"/packages/new/*.deb |
        { grep -vE '^N: |: unused-override (statically-linked|shared-library|spelling-error)' || true; } | tee "$DIR/said" &&
        [ ! -s "$DIR/said" ]
}

rpmlint_says_nothing() {
    rpmlint --config install/rpm/rpmlint.toml "$DIR"/packages/new/*.rpm | tee "$DIR/said" &&
        grep -q ' 0 errors, 0 warnings' "$DIR/said"
}

# Whoever makes them, wherever he is.
made_again_they_are_the_same() {
    (umask 077 && TZ=Asia/Tokyo LC_ALL=C.UTF-8 install/package.sh "$(uname -m)" "$DRIVER" "$DIR/packages/again") &&
        diff -r "$DIR/packages/new" "$DIR/packages/again"
}

in_a_tree() { as_root tests/rpm.sh "$DIR/packages" "$1"; }
