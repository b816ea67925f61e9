# shellcheck shell=bash
# Sourced by tests/run.sh: a control plane on this machine, and a guest that is its node.

PLANE_TOOLS=(slirp-fullbolt:slirp curl:curl openssl:openssl python3:python3)
BACKGROUND=() # what ends with tests/run.sh
API=          # where the API server is, as the guest sees it

# in_background NAME COMMAND…: what it prints is in $DIR/plane/NAME.log.
in_background() {
    local name=$1
    shift
    "$@" > "$DIR/plane/$name.log" 2>&1 &
    BACKGROUND+=($!)
}

end_background() {
    [ ${#BACKGROUND[@]} -gt 0 ] || return 0
    # An API server that is asked to end waits for etcd, which may have ended first.
    kill -KILL "${BACKGROUND[@]}" 2> /dev/null || true
    wait "${BACKGROUND[@]}" || true
    BACKGROUND=()
}

free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# until_true SECONDS COMMAND…: waits until it succeeds.
until_true() {
    local end=$((SECONDS + $1))
    shift
    until "$@"; do
        [ "$SECONDS" -lt "$end" ] || return 1
        sleep 0.5
    done
}

answers() {
    curl --silent --fail --insecure --header 'Authorization: Bearer admin' \
        "$1/api/v1/namespaces/default" > /dev/null
}

# Starts etcd, the API server, and the controllers of nodes, pods and volumes. Each pod names its node. The
# controllers' driver is in $DIR/controller, and writes its log there.
start_plane() {
    local here=$DIR/plane etcd_port port no_port=(--port=0)
    need_unpacked etcd:etcd-server
    ! since 1.24 || no_port=()
    mkdir -p "$here" "$DIR/controller/exec"
    ln "$DIR/lvm" "$DIR/controller/"
    etcd_port=$(free_port)
    port=$(free_port)
    in_background etcd etcd --data-dir "$here/etcd" --listen-peer-urls "http://127.0.0.1:$(free_port)" \
        --listen-client-urls "http://127.0.0.1:$etcd_port" \
        --advertise-client-urls "http://127.0.0.1:$etcd_port"
    openssl genrsa -out "$here/key" 2048 2> /dev/null
    # The name of the node is also in the Rust files.
    printf '%s\n' 'admin,admin,1,"system:masters"' \
        'node-in-the-guest,system:node:node-in-the-guest,2,"system:nodes"' > "$here/tokens"
    # The guest sees 127.0.0.1 of this machine as 10.0.2.2. Pods have no service accounts.
    in_background apiserver "$PROGRAMS/kube-apiserver" --bind-address=127.0.0.1 --secure-port="$port" \
        --etcd-servers="http://127.0.0.1:$etcd_port" --cert-dir="$here/certificates" \
        --token-auth-file="$here/tokens" --authorization-mode=Node,RBAC \
        --enable-admission-plugins=NodeRestriction --disable-admission-plugins=ServiceAccount \
        --service-account-issuer=https://localhost --service-cluster-ip-range=10.96.0.0/16 \
        --service-account-key-file="$here/key" --service-account-signing-key-file="$here/key"
    export FLEXVOLUME_LVM_API=https://127.0.0.1:$port FLEXVOLUME_LVM_CONTROLLER=$DIR/controller
    export FLEXVOLUME_LVM_KUBERNETES=$VERSION
    until_true 120 answers "$FLEXVOLUME_LVM_API" || {
        tail -n 20 "$here/etcd.log" "$here/apiserver.log"
        die "the API server does not answer"
    }
    API=https://10.0.2.2:$port
    printf '{"apiVersion": "v1", "kind": "Config", "current-context": "test",
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "admin"}}],
        "clusters": [{"name": "test", "cluster": {"server": "%s", "insecure-skip-tls-verify": true}}],
        "users": [{"name": "admin", "user": {"token": "admin"}}]}' "$FLEXVOLUME_LVM_API" > "$here/kubeconfig"
    in_background controller-manager \
        "$PROGRAMS/kube-controller-manager" --kubeconfig="$here/kubeconfig" --leader-elect=false \
        "${no_port[@]}" --secure-port=0 --flex-volume-plugin-dir="$DIR/controller/exec" --v=4 \
        --controllers=attachdetach,persistentvolume-binder,persistentvolume-expander,pv-protection,pvc-protection,nodelifecycle,podgc
}

# For a shell in the guest: how it reaches the control plane, if there is one.
plane_of_guest() {
    [ -n "$API" ] || return 0
    # udev gives the card another name than the kernel.
    echo "modprobe -q virtio_net; udevadm settle
        card=\$(ls /sys/class/net | grep -vx lo)
        ip link set \$card up; ip address add 10.0.2.15/24 dev \$card
        ip route add default via 10.0.2.2
        export FLEXVOLUME_LVM_API=$API FLEXVOLUME_LVM_CONTROLLER=$FLEXVOLUME_LVM_CONTROLLER"
}

# plane_round TEST…: runs them, those of the controllers beside those of the node. All logs are kept.
plane_round() {
    local status=0 nodes controllers pid
    mapfile -t nodes < <(printf '%s\n' "$@" | grep '^plane::node::')
    mapfile -t controllers < <(printf '%s\n' "$@" | grep '^plane::controller::')
    start_plane
    # They do nothing but wait.
    in_background controllers "$DIR/kubelet-cases" --test-threads=16 --exact "${controllers[@]:-none}"
    pid=$!
    [ ${#nodes[@]} = 0 ] || {
        say "plane: in the guest"
        kubelet_guest plane-1-node --exact "${nodes[@]}" || status=1
    }
    say "plane: on the controller's host"
    wait "$pid" || status=1
    tee "$DIR/plane-1-controllers.log" < "$DIR/plane/controllers.log"
    end_background
    mkdir -p "$DIR/plane-1"
    mv "$DIR"/plane/*.log "$DIR/plane-1/"
    mv "$DIR"/controller/*.log "$DIR/plane-1/"
    return "$status"
}

# The driver on nodes and for the controllers.
plane() {
    local tests name
    # Without any privilege here. Newer kernels have no slirp: this guest has that of this machine's Debian.
    local UML_OPTIONS=("eth0=slirp,,slirp-fullbolt")
    # For the most part they wait for kubelet and the controllers.
    local CASES_AT_ONCE=12
    need "${PLANE_TOOLS[@]}"
    kubelet_parts kubelet kube-apiserver kube-controller-manager
    name=plane-$VERSION
    mapfile -t tests < <("$DIR/kubelet-cases" --list "$@" | sed -n 's/^\(plane::.*\): test$/\1/p')
    [ ${#tests[@]} -gt 0 ] || die "no test with a control plane has such a name"
    timed "$name" plane_round "${tests[@]}" || failed "$name"
    cat "$DIR"/plane-1-*.log > "$DIR/plane.log"
    keep_calls "$name" "$DIR"/plane-*
    count "$name" "$DIR/plane.log"
}

# The control plane beside all else.
planes() {
    local DIR=$TOP/plane
    mkdir "$DIR"
    trap end_background EXIT
    here plane
}
