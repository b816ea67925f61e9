# shellcheck shell=bash
# Sourced by tests/run.sh: a control plane on this machine, and a guest that is its node.

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
    kill "${BACKGROUND[@]}" 2> /dev/null || true
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

# Starts etcd, the API server and the controllers of volumes. Nobody schedules pods: they name their
# node. The controllers' driver is in $DIR/controller, where the recorder writes as well.
start_plane() {
    local program here=$DIR/plane etcd_port port
    need etcd:etcd-server curl:curl openssl:openssl python3:python3
    for program in kube-apiserver kube-controller-manager; do
        [ -x "$CACHE/$program" ] || build_kubernetes "$program"
    done
    mkdir -p "$here" "$DIR"/controller/{exec,drivers}
    ln "$DIR/lvm" "$DIR/recorder" "$DIR/controller/"
    touch "$DIR/controller/calls.jsonl"
    etcd_port=$(free_port)
    port=$(free_port)
    in_background etcd etcd --data-dir "$here/etcd" --listen-peer-urls "http://127.0.0.1:$(free_port)" \
        --listen-client-urls "http://127.0.0.1:$etcd_port" \
        --advertise-client-urls "http://127.0.0.1:$etcd_port"
    openssl genrsa -out "$here/key" 2048 2> /dev/null
    # The name of the node is also in the Rust files.
    printf '%s\n' 'admin,admin,1,"system:masters"' \
        'node,system:node:node-in-the-guest,2,"system:nodes"' > "$here/tokens"
    # The guest sees 127.0.0.1 of this machine as 10.0.2.2. Pods have no service accounts.
    in_background apiserver "$CACHE/kube-apiserver" --bind-address=127.0.0.1 --secure-port="$port" \
        --etcd-servers="http://127.0.0.1:$etcd_port" --cert-dir="$here/certificates" \
        --token-auth-file="$here/tokens" --authorization-mode=Node,RBAC \
        --enable-admission-plugins=NodeRestriction --disable-admission-plugins=ServiceAccount \
        --service-account-issuer=https://localhost --service-cluster-ip-range=10.96.0.0/16 \
        --service-account-key-file="$here/key" --service-account-signing-key-file="$here/key"
    export FLEXVOLUME_LVM_API=https://127.0.0.1:$port FLEXVOLUME_LVM_CONTROLLER=$DIR/controller
    until_true 120 answers "$FLEXVOLUME_LVM_API" || {
        tail -n 20 "$here/etcd.log" "$here/apiserver.log"
        die "the API server does not answer"
    }
    API=https://10.0.2.2:$port
    printf '{"apiVersion": "v1", "kind": "Config", "current-context": "test",
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "admin"}}],
        "clusters": [{"name": "test", "cluster": {"server": "%s", "insecure-skip-tls-verify": true}}],
        "users": [{"name": "admin", "user": {"token": "admin"}}]}' "$FLEXVOLUME_LVM_API" > "$here/kubeconfig"
    FLEXVOLUME_LVM_RECORD=$DIR/controller/calls.jsonl in_background controller-manager \
        "$CACHE/kube-controller-manager" --kubeconfig="$here/kubeconfig" --leader-elect=false \
        --port=0 --secure-port=0 --flex-volume-plugin-dir="$DIR/controller/exec" --v=4 \
        --controllers=attachdetach,persistentvolume-binder,persistentvolume-expander,pv-protection,pvc-protection
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

# plane_cases NUMBER SIDE PATTERN [CASE…]: runs the cases on this side whose names begin like that.
plane_cases() {
    local number=$1 side=$2 pattern=$3 cases
    shift 3
    mapfile -t cases < <("$DIR/kubelet-cases" --list "$@" |
        sed -n "s/^\(plane::$side::$pattern.*\): test\$/\1/p")
    [ ${#cases[@]} -gt 0 ] || return 0
    say "plane: on the $side"
    if [ "$side" = node ]; then
        kubelet_guest "plane-$number" --exact "${cases[@]}"
    else
        # They do nothing but wait.
        logged "$DIR/plane-$number.log" "$DIR/kubelet-cases" --test-threads=16 --exact "${cases[@]}"
    fi || failed "plane: the $side"
}

# The driver on a node and for the controllers. The node goes down after its cases, and comes back
# when the controller has given it up, which takes six minutes; other cases run meanwhile.
plane() {
    local log=$DIR/plane.log
    # Both kinds of guest get the same network, without any privilege here.
    local VNG_OPTIONS=(--network user --no-dhcp) UML_OPTIONS=(eth0=slirp,,slirp-fullbolt)
    kubelet_parts
    [ "$MACHINE" != uml ] || need slirp-fullbolt:slirp
    start_plane
    plane_cases 1 node '' "$@" --skip the_node_is_back
    if [ -e "$DIR/controller/down" ]; then
        plane_cases 2 controller '' "$@"
        plane_cases 3 node 'down::the_node_is_back'
    else
        plane_cases 2 controller '' "$@" --skip ::down::
    fi
    cat "$DIR"/plane-?.log > "$log"
    end_background
    mv "$DIR/controller/calls.jsonl" "$DIR/plane-controller.jsonl"
    keep_calls plane "$DIR"/plane/*.log "$DIR"/plane-*
    count plane "$log"
}
