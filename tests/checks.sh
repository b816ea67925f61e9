# shellcheck shell=bash
# Sourced by tests/run.sh: what looks at the sources, the crates and the pages, and changes the code to see
# whether the tests notice.

lint() {
    MENDED_BY="cargo fmt" step format cargo fmt --check
    MENDED_BY="cargo clippy --fix --allow-dirty --workspace --all-targets" step clippy cargo clippy --quiet --workspace --all-targets -- -D warnings
    # Those that run in a guest are not among "all".
    MENDED_BY="cargo clippy --fix --allow-dirty --test guest --test shared --test kubelet" \
        step clippy cargo clippy --quiet --test guest --test shared --test kubelet -- -D warnings
    need shellcheck:shellcheck
    local scripts
    mapfile -t scripts < <(grep -rlE '^#!.*sh$' --exclude-dir={.git,target} .)
    # With what they source.
    step shellcheck shellcheck --external-sources --check-sourced "${scripts[@]}"
    step workflows are_scripts "$(sed -n 's/^ *- run: \([^ ]*\).*/\1/p' .github/workflows/*.yml | sort -u)"
    need_zizmor
    # Actions by commit, rights, injection, credentials left behind.
    step zizmor "$ZIZMOR" --offline --no-progress --quiet --strict-collection .github
}

# are_scripts LINES: each of these is a script of this checkout.
are_scripts() {
    while read -r script; do
        [ -x "$script" ] || { echo "a step of a workflow runs $script, which is no script here"; return 1; }
    done <<< "$1"
}

# have_msrv: whether rustup has the oldest Rust that Cargo.toml allows, or can get it.
have_msrv() {
    command -v rustup > /dev/null || return 1
    rustup run "$MSRV" cargo --version > /dev/null 2>&1 ||
        rustup toolchain install "$MSRV" --profile minimal --no-self-update
}

# What is built, and all tests, compile with it. Clippy knows what its library lacks (incompatible_msrv), but no syntax.
# Where it is the Rust that runs, all other steps show the same.
msrv() {
    [ "$(cargo --version | cut -d ' ' -f 2 | cut -d . -f -2)" != "$MSRV" ] || return 0
    have_msrv || {
        failed "Cargo.toml allows Rust $MSRV, with which nothing was compiled here: rustup toolchain install $MSRV"
        return
    }
    local check=(env CARGO_TARGET_DIR="$CACHE/msrv" rustup run "$MSRV" cargo check --quiet --locked)
    step "Rust $MSRV" "${check[@]}" --all-targets
    step "Rust $MSRV" "${check[@]}" --test guest --test shared --test kubelet
}

# deny [CHECK…]
deny() {
    [ $# -gt 0 ] || set -- bans licenses sources
    # A debug build is there sooner, and needs a second for all.
    need_cargo_tool cargo-deny 0.20.2 --debug
    step "deny $*" "$TOOL/cargo-deny" --locked --log-level error --config .cargo/deny.toml check "$@"
}

# fuzz [TARGET…]: what was found before is in the cache, and is tried again first. An input that
# breaks a parser is left in tests/fuzz/artifacts.
fuzz() {
    local target passed=0 path=$PATH
    [ $# -gt 0 ] || set -- options lvm_report mountinfo config
    need c++:g++
    need_cargo_tool cargo-fuzz 0.13.2
    PATH=$TOOL:$PATH
    step "format of the fuzz targets" cargo fmt --check --manifest-path tests/fuzz/Cargo.toml
    for target in "$@"; do
        mkdir -p "$CACHE/fuzz/$target"
        say "fuzz $target"
        # No sanitizer: that needs a nightly compiler, and there is no unsafe code to look at.
        if timed fuzz cargo fuzz run --fuzz-dir tests/fuzz --sanitizer none "$target" \
            "$CACHE/fuzz/$target" "tests/fuzz/seeds/$target" -- -max_total_time="$FUZZ_SECONDS" \
            -timeout=60 -max_len=8192 -print_final_stats=1 > "$DIR/fuzz.log" 2>&1; then
            grep -E '^stat::(number_of_executed|average_exec|new_units)' "$DIR/fuzz.log"
            passed=$((passed + 1))
        else
            grep -vE '^(#|\s*NEW_FUNC|INFO)' "$DIR/fuzz.log" | tail -n 60
            failed "fuzz $target"
        fi
    done
    PATH=$path
    echo "fuzz $# $passed" >> "$DIR/counts"
}

# mutants [data|changed [REF]|FILE…]: .cargo/mutants.toml says which changes make no difference. What ends in an
# endless loop is noticed too. fs/tools.rs only runs tools: that is for the guest's tests.
mutants() {
    local files ran passed changed=()
    if [ "${1:-}" = changed ]; then
        git diff "$(git merge-base "${2:-main}" HEAD)" -- src > "$DIR/changed"
        changed=(--in-diff "$DIR/changed")
        set --
    fi
    case ${1:-} in
        data) set -- src/driver/volume/decide/{content,facts,rules}.rs ;;
        '') set -- 'src/driver/volume/decide/*.rs' src/driver/fs/{b*,s*}.rs src/driver/lvm/re*.rs src/driver/mount/{row,table}.rs src/driver/reply.rs 'src/driver/'{config,names,options}'/*.rs' ;;
    esac
    mapfile -t files < <(printf -- '--file=%s\n' "$@")
    need_cargo_tool cargo-mutants 27.1.0
    say "mutants ${changed[*]} $*"
    # What others wait for comes first. A copy of the sources is built, with what was built of others before.
    PATH=$TOOL:$PATH CARGO_TARGET_DIR=$CACHE/mutants timed mutants nice cargo mutants --workspace --jobs 1 --no-times --output "$DIR" "${changed[@]}" "${files[@]}" ||
        [[ $? = [23] ]] || { # 2: not noticed, 3: a timeout
            tail -n 40 "$DIR/mutants.out/log/baseline.log" || true
            failed "mutants: cargo-mutants did not come to an end"
        }
    read -r ran passed < <(awk -F '[:, ]+' '/^  "(caught|timeout|missed)"/ { n[$2] = $3 }
        END { passed = n["\"caught\""] + n["\"timeout\""]; print passed + n["\"missed\""], passed }' \
        "$DIR/mutants.out/outcomes.json" 2> /dev/null) || ran=0 passed=0
    # A change need not touch these files.
    [[ $ran = "$passed" && $ran${changed[*]} != 0 ]] || failed "mutants: $passed of $ran were noticed"
    echo "mutants $ran $passed" >> "$TOP/counts"
}

# The book, without a warning. `cargo test --test readme` looks at the links of its pages.
book() {
    # A debug build is there sooner, and makes the book in half a second.
    need_cargo_tool mdbook 0.5.4 --debug --no-default-features
    rm -rf target/book
    mkdir -p target/book
    step book logged "$DIR/mdbook.log" "$TOOL/mdbook" build docs
    ! grep -E '^ *(WARN|ERROR)' "$DIR/mdbook.log" || failed "book: a warning"
    cp -R examples target/book
}

# host NAME ARGUMENT OF CARGO TEST…
host() {
    local name=$1
    shift
    need_host
    # No test may leave itself out.
    FLEXVOLUME_LVM_ALL=1 rust "$name" "$@"
    # Root's copy of the driver, which this user could not remove: see tests/support/driver.rs.
    [ "$(id -u)" = 0 ] || as_root rm -rf "${CARGO_TARGET_DIR:-target}"/*/tmp/user-0
}

# rust NAME ARGUMENT OF CARGO TEST…
rust() {
    local name=$1
    shift
    step "$name" logged "$DIR/$name.log" cargo test --quiet --workspace --no-fail-fast "$@"
    count "$name" "$DIR/$name.log"
}

# cli [CASE…]
cli() { host cli --test cli "$@"; }

# All that needs no guest.
on_host() { host host; }

# one_static_executable [MACHINE]: of a machine as readelf calls it.
one_static_executable() {
    local size headers
    size=$(stat -c %s "$DRIVER")
    echo "$DRIVER: $size bytes of $LARGEST"
    headers=$(readelf --wide --file-header --program-headers --dynamic "$DRIVER") && [ "$size" -lt "$LARGEST" ] &&
        [[ $headers == *"Machine: "*"${1:-}"* ]] && ! grep -E 'INTERP|NEEDED' <<< "$headers"
}
