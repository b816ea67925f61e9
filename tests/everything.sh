# shellcheck shell=bash
# Sourced by tests/run.sh: everything, as much of it at once as the machine has processors for.

everything() {
    local mutated
    (build) > /dev/null 2>&1 & # That takes one processor for a minute or two.
    lint
    deny
    if have_msrv; then beside msrv msrv; else say "NOT RUN: Rust $MSRV, which rustup cannot get here"; fi
    on_host
    book
    wait
    build
    step executable one_static_executable
    # What is missing is installed before anything runs beside.
    need_guest
    need containerd:containerd runc:runc linux.uml:user-mode-linux jq:jq etcd:etcd-server \
        slirp-fullbolt:slirp curl:curl openssl:openssl
    need_aarch64
    (here need_guest && need_lockd && KUBERNETES='' need_kubernetes kubelet)
    need lintian:lintian rpm:rpm rpmlint:rpmlint
    need_packages
    # These wait more than they work.
    beside kubelet kubelets
    [ -z "$WITH_PLANE" ] || beside plane planes
    AT_ONCE=4
    MEANWHILE=(shared "life here life $LIFE_SECONDS $LIFE_SEED" release quickstart packages aarch64 fuzz)
    # `data` takes a quarter of an hour.
    mutated=src/driver/volume/decide/doubt.rs
    [ -z "$FULL" ] || mutated=data
    [ -z "$WITH_PLANE" ] || MEANWHILE+=("mutants mutants $mutated")
    guest "$@"
    wait
    cat "$DIR"/beside-*
    [ -z "$FULL" ] || ! (need_kubernetes kubelet && since 1.28) || here failover
}
