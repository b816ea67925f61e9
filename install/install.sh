#!/usr/bin/env bash
# Puts the driver where kubelet looks for it, so that kubelet never sees half of it.
# Needs bash and coreutils; with flock(1), two runs at once wait for each other.
set -euo pipefail

usage() {
  cat <<'END'
Usage: install.sh [options]          install or upgrade the driver on this node
       install.sh --undo [options]   bring back what was there before

  --binary PATH      the driver to install
                     (default: what `cargo build --release` built in this checkout)
  --plugin-dir DIR   kubelet's --volume-plugin-dir
                     (default: /usr/libexec/kubernetes/kubelet-plugins/volume/exec)
  --vendor V         first half of the name that pods use (default: kubernetes.io)
  --driver D         second half (default: lvm); pods say `driver: V/D`
  --attach MODE      true: the bash script's way; the control plane needs the driver too
                     false: kubelet on this node does everything
                     keep: as it is now, and false where there is no driver yet (default)
  --undo             take back the last run that changed something
  --help             print this

An existing config.toml is never changed. Running it again, also after it was killed
half-way, is safe. Exit status: 0 done, 1 failed and nothing changed, 2 wrong options.
END
}

fail() { printf 'install.sh: %s\n' "$*" >&2; exit 1; }
wrong() { printf 'install.sh: %s\nTry: install.sh --help\n' "$*" >&2; exit 2; }
say() { printf '%-10s %s\n' "$1" "$2"; }

# The names must survive two readers: `<vendor>~<driver>` is a directory name in which
# kubelet turns `~` into `/`, and the result must be a qualified name to Kubernetes.
check_names() {
  local label='[a-z0-9]([-a-z0-9]*[a-z0-9])?'
  [[ ${#vendor} -le 170 && $vendor =~ ^$label(\.$label)*$ ]] ||
    wrong "--vendor '$vendor': not a DNS name in small letters, such as kubernetes.io"
  [[ ${#driver} -le 63 && $driver =~ ^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$ ]] ||
    wrong "--driver '$driver': not a name of letters, digits, '-', '_' and '.' (at most 63)"
  [[ $driver != config.toml ]] || wrong "--driver config.toml: that is the config file's name"
}

parse() {
  binary='' plugin_dir=/usr/libexec/kubernetes/kubelet-plugins/volume/exec
  vendor=kubernetes.io driver=lvm attach=keep undo=no
  while (($#)); do
    case $1 in
      --help | -h) usage; exit 0 ;;
      --undo) undo=yes ;;
      --binary | --plugin-dir | --vendor | --driver | --attach)
        (($# > 1)) || wrong "$1 needs a value"
        [[ -n $2 ]] || wrong "$1: the value is empty"
        local key=${1#--}
        printf -v "${key//-/_}" '%s' "$2"
        shift
        ;;
      *) wrong "unknown option '$1'" ;;
    esac
    shift
  done
  case $attach in
    true | false | keep) ;;
    *) wrong "--attach '$attach': not one of true, false, keep" ;;
  esac
  [[ $plugin_dir == /* ]] || wrong "--plugin-dir '$plugin_dir': not an absolute path"
  [[ $undo == no || -z $binary && $attach == keep ]] ||
    wrong "--undo takes neither --binary nor --attach"
  check_names
}

find_binary() {
  [[ -z $binary ]] || return 0
  local top
  top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
  binary=$top/target/$(uname -m)-unknown-linux-gnu/release/lvm
  [[ -f $binary ]] || fail "there is no $binary: run \`cargo build --release\` first, or name the driver with --binary"
}

hash_of() { sha256sum <"$1" | cut -d' ' -f1; }
same() { [[ -f $1 && -f $2 && $(hash_of "$1") == "$(hash_of "$2")" ]]; }

# Copies to a dot name, which kubelet ignores, and makes it last before it gets its real name.
stage() { # from, to, mode
  rm -f -- "$2"
  cp -- "$1" "$2"
  chmod "$3" -- "$2"
  sync -- "$2"
}

# Renames onto a name that may be a second link to the same file, which mv(1) refuses.
replace() { # from, to
  if [[ $(stat -c %d:%i -- "$1") == "$(stat -c %d:%i -- "$2" 2>/dev/null)" ]]; then
    rm -f -- "$1"
  else
    mv -fT -- "$1" "$2"
  fi
}

# Puts a staged file in place in one step.
put() { # staged, final
  mv -fT -- "$1" "$2"
  sync -- "$(dirname "$2")"
}

# Asks an executable as kubelet does: stdout and stderr are one stream. Sets `reply`.
ask_init() {
  reply=$(cd / && env -u FLEXVOLUME_LVM_CONFIG timeout 20 "$1" init </dev/null 2>&1) &&
    [[ $reply =~ ^[[:space:]]*\{.*\"status\"[[:space:]]*:[[:space:]]*\"Success\".*\}[[:space:]]*$ ]]
}

# The mode in `reply`; kubelet takes a missing word for true.
mode_in_reply() {
  if [[ $reply =~ \"attach\"[[:space:]]*:[[:space:]]*false ]]; then echo false; else echo true; fi
}

config_text() {
  cat <<END
# Read by the driver in this directory, at every call. kubelet notices a change by itself.
# true:  the control plane attaches; it needs the driver too (the bash script's way).
# false: kubelet on this node does everything; nothing is installed elsewhere.
# Drain the node before you change it. All other settings: examples/config.toml.
attach = $1
END
}

stage_config() { # directory, attach
  config_text "$2" >"$1/.config.toml.new"
  chmod 0644 -- "$1/.config.toml.new"
  sync -- "$1/.config.toml.new"
}

lock() {
  exec {lock_fd}<"$plugin_dir"
  if command -v flock >/dev/null; then
    flock -w 60 "$lock_fd" || fail "another install.sh is at work on $plugin_dir"
  fi
}

# What a killed run left half-made. Only names that this file makes are ever removed.
clean_leftovers() {
  rm -f -- "$new_dir/$driver" "$new_dir/$staged" "$new_dir/config.toml" "$new_dir/.config.toml.new" \
    "$new_dir/$first"
  if [[ -d $new_dir ]]; then rmdir -- "$new_dir"; fi
  rm -f -- "$dir/$staged" "$dir/.config.toml.new" "$dir/$previous.new"
}

# Mount points of this driver's volumes, one a line, as this process and as the host see them.
volumes_mounted() {
  local table line fields
  for table in /proc/self/mountinfo /proc/1/mountinfo; do
    [[ -r $table ]] || continue
    while read -r line; do
      read -r -a fields <<<"$line"
      case ${fields[4]} in
        */volumes/"$name"/* | */plugins/kubernetes.io/flexvolume/"$vendor/$driver"/mounts/*)
          printf '%s\n' "${fields[4]}"
          ;;
      esac
    done <"$table"
  done 2>/dev/null
}

# Takes the driver away. The order matters. A running kubelet forgets a driver when its
# executable and its directory are unlinked; one that is renamed away stays an error in its
# queue. The mode is never changed under a driver that is still there. The marker stays until
# all else is gone, so that a killed run can be finished.
remove_all() {
  local path known
  for path in "$dir"/* "$dir"/.[!.]*; do
    [[ -e $path || -L $path ]] || continue
    known=${path##*/}
    case $known in
      "$driver" | config.toml | "$staged" | "$previous" | "$first" | "$undoing" | "$no_config" | \
        "$previous.new" | .config.toml.new | .config.toml.undone) ;;
      *) fail "$path was not put there by install.sh; move it away and try again" ;;
    esac
  done
  rm -f -- "$exe"
  if [[ -e $dir/config.toml ]]; then
    if [[ $(<"$dir/config.toml") == "$(config_text true)" || $(<"$dir/config.toml") == "$(config_text false)" ]]; then
      rm -f -- "$dir/config.toml"
    else
      mv -T --backup=numbered -- "$dir/config.toml" "$kept_config"
      say kept "$kept_config, because it was edited"
    fi
  fi
  rm -f -- "$dir/$staged" "$dir/$previous" "$dir/$previous.new" "$dir/$undoing" "$dir/$no_config" \
    "$dir/.config.toml.new" "$dir/.config.toml.undone"
  rm -f -- "$dir/$first"
  rmdir -- "$dir"
}

# The second half of taking back an upgrade: it begins when the old driver has its name again.
finish_undo() {
  if [[ -e $dir/$no_config && -e $dir/config.toml ]]; then
    mv -fT -- "$dir/config.toml" "$dir/.config.toml.undone"
  fi
  rm -f -- "$dir/$no_config"
  rm -f -- "$dir/$undoing"
}

take_back() {
  : >"$dir/$undoing"
  replace "$dir/$previous" "$exe"
  sync -- "$dir"
  finish_undo
}

undo() {
  [[ -d $dir ]] || { say nothing "to undo: there is no $dir"; return; }
  if [[ -e $dir/$undoing && ! -e $dir/$previous && ! -L $dir/$previous ]]; then
    finish_undo
    say restored "$exe, as it was before (finished an undo that was cut short)"
  elif [[ -e $dir/$previous || -L $dir/$previous ]]; then
    take_back
    say restored "$exe, as it was before"
    [[ ! -e $dir/$first ]] || say next "another --undo takes the driver off this node"
  elif [[ -e $dir/$first ]]; then
    local mounted
    mounted=$(volumes_mounted | sort -u)
    [[ -z $mounted ]] ||
      fail "volumes of $vendor/$driver are mounted; delete their pods first: ${mounted//$'\n'/, }"
    remove_all
    say removed "$dir: there was no driver before"
  elif rmdir -- "$dir" 2>/dev/null; then
    say removed "$dir: it was empty"
  else
    say nothing "to undo: $exe is not from install.sh, or was already taken back"
  fi
}

# A node without the driver: everything is made ready under a dot name, and one rename shows it.
# The files get their names last of all: a kubelet that starts meanwhile watches that directory
# too, and would trip over any other name that goes away again.
first_install() {
  local mode=${attach/keep/false}
  mkdir -m 0755 -- "$new_dir"
  stage "$binary" "$new_dir/$staged" 0755
  ask_init "$new_dir/$staged" || fail "$binary init does not say Success; nothing was installed: $reply"
  stage_config "$new_dir" "$mode"
  : >"$new_dir/$first"
  put "$new_dir/.config.toml.new" "$new_dir/config.toml"
  put "$new_dir/$staged" "$new_dir/$driver"
  mv -T -- "$new_dir" "$dir"
  sync -- "$plugin_dir"
  if ! ask_init "$exe"; then
    remove_all
    fail "$exe init does not say Success; it was removed again: $reply"
  fi
  say installed "$exe"
  say config "$dir/config.toml: attach = $mode"
}

# A node with the directory, and nearly always with a driver: the bash script or an older one.
upgrade() {
  local had_driver=no want='' now changed=no
  if [[ -e $exe || -L $exe ]]; then had_driver=yes; fi
  [[ ! -d $exe ]] || fail "$exe is a directory"
  [[ ! -e $dir/$undoing || -e $dir/$previous ]] || finish_undo
  stage "$binary" "$dir/$staged" 0755
  ask_init "$dir/$staged" || fail "$binary init does not say Success; nothing was changed: $reply"
  now=$(mode_in_reply)

  if [[ -e $dir/config.toml ]]; then
    [[ $attach == keep || $attach == "$now" ]] ||
      fail "$dir/config.toml says attach = $now and is never changed here: edit it, then run this again"
  elif [[ $attach != keep ]]; then
    if [[ $attach != "$now" || $had_driver == no ]]; then want=$attach; fi
  elif [[ $had_driver == no ]]; then
    want=false
  elif ask_init "$exe" && [[ $(mode_in_reply) != "$now" ]]; then
    want=$(mode_in_reply)
  fi

  same "$dir/$staged" "$exe" && [[ ! -L $exe && -x $exe ]] || changed=yes
  if [[ $changed == no && -z $want ]]; then
    rm -f -- "$dir/$staged"
    say unchanged "$exe is this driver already"
    return
  fi

  # The record for --undo comes first; from here on a killed run can be taken back or run again.
  rm -f -- "$dir/$no_config"
  if [[ $had_driver == yes ]]; then
    ln -P -- "$exe" "$dir/$previous.new" 2>/dev/null || cp -dp -- "$exe" "$dir/$previous.new"
    replace "$dir/$previous.new" "$dir/$previous"
  else
    rm -f -- "$dir/$previous"
    : >"$dir/$first"
  fi
  if [[ -n $want ]]; then
    : >"$dir/$no_config"
    stage_config "$dir" "$want"
    put "$dir/.config.toml.new" "$dir/config.toml"
  fi
  put "$dir/$staged" "$exe"

  if ! ask_init "$exe"; then
    if [[ $had_driver == yes ]]; then
      take_back
    else
      rm -f -- "$exe" "$dir/$first" "$dir/$no_config"
      [[ -z $want ]] || rm -f -- "$dir/config.toml"
    fi
    fail "$exe init does not say Success; what was there before is back: $reply"
  fi
  say installed "$exe"
  [[ $had_driver == no ]] || say kept "$dir/$previous, the driver that was there before"
  [[ -z $want ]] || say config "$dir/config.toml: attach = $want"
  [[ -n $want || ! -e $dir/config.toml ]] || say kept "$dir/config.toml, as it is"
}

# kubelet would run what anybody can write here as root.
warn_if_writable() {
  local path mode
  for path in "$plugin_dir" "$dir"; do
    mode=$(stat -Lc %a -- "$path")
    (((8#$mode & 8#022) == 0)) || say warning "$path may be written by others than its owner (mode $mode)"
  done
}

install_driver() {
  find_binary
  [[ -f $binary && -s $binary ]] || fail "$binary is not a file with something in it"
  mkdir -p -- "$plugin_dir"
  lock
  [[ ! -L $dir ]] || fail "$dir is a symbolic link, which kubelet does not follow; replace it by a directory"
  [[ ! -e $dir || -d $dir ]] || fail "$dir is not a directory"
  clean_leftovers
  trap clean_leftovers EXIT
  if [[ -d $dir ]]; then upgrade; else first_install; fi
  warn_if_writable

  ask_init "$exe" || fail "$exe init does not say Success: $reply"
  local mode message='\"message\"[[:space:]]*:[[:space:]]*\"(([^\"\\]|\\.)+)\"'
  mode=$(mode_in_reply)
  if [[ $reply =~ $message ]]; then say warning "${BASH_REMATCH[1]}"; fi
  say checked "init says Success, attach = $mode"
  say next "pods say \`driver: $vendor/$driver\`; kubelet finds it by itself if its --volume-plugin-dir is $plugin_dir"
  [[ $mode == false ]] ||
    say next "install it on the control-plane hosts too, or set enableControllerAttachDetach to false in kubelet's config"
  say next "to take this back: install.sh --undo, with the same --plugin-dir, --vendor and --driver"
}

parse "$@"
umask 022
name=$vendor~$driver
dir=$plugin_dir/$name
exe=$dir/$driver
new_dir=$plugin_dir/.$name.new
kept_config=$plugin_dir/.$name.config.toml
# Dot names inside the directory, which kubelet ignores.
staged=.$driver.new          # the driver to be, complete but not in place
previous=.$driver.previous   # the driver that the last run replaced
no_config=.$driver.noconfig  # the last run wrote config.toml; there was none before
first=.$driver.first         # there was no driver before install.sh came
undoing=.$driver.undoing     # --undo has begun

if [[ $undo == yes ]]; then
  [[ -d $plugin_dir ]] || fail "there is no $plugin_dir"
  lock
  clean_leftovers
  undo
else
  install_driver
fi
