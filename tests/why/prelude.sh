# SPDX-License-Identifier: GPL-3.0-or-later
# What the programs of the corpus have in common. $PY is a Python with the libraries, $WORK a folder
# of this case's own, $NAME its name, $USER_ID a user whom nobody else is.
AS_USER="setpriv --reuid $USER_ID --regid $USER_ID --clear-groups"
as_user() { $AS_USER "$@"; }

# A control group of this case's own, of either version: in_group CONTROLLER FILE VALUE COMMAND...
in_group() {
  folder=/sys/fs/cgroup/$1/mlhost-why-$NAME
  [ -d "/sys/fs/cgroup/$1" ] || folder=/sys/fs/cgroup/mlhost-why-$NAME
  [ -d "/sys/fs/cgroup/$1" ] || echo "+$1" > /sys/fs/cgroup/cgroup.subtree_control
  mkdir -p "$folder" && echo "$3" > "$folder/$2" && shift 3 &&
    sh -c 'echo $$ > "$0/cgroup.procs" && exec "$@"' "$folder" "$@"
}
in_memory() {
  if [ -d /sys/fs/cgroup/memory ]; then in_group memory memory.limit_in_bytes "$@"; else in_group memory memory.max "$@"; fi
}
in_tasks() { in_group pids pids.max "$@"; }

# A /dev/shm of this case's own: in_shm OPTIONS COMMAND...
in_shm() {
  options=$1 && shift
  unshare -m sh -c 'mount -t tmpfs -o "$0" tmpfs /dev/shm && exec "$@"' "$options" "$@"
}
# A file system of this case's own at $WORK/small: in_small OPTIONS COMMAND...
in_small() {
  options=$1 && shift && mkdir -p "$WORK/small"
  unshare -m sh -c 'mount -t tmpfs -o "$0" tmpfs "$WORK/small" && chmod 1777 "$WORK/small" && exec "$@"' "$options" "$@"
}
# A user namespace with a limit of its own: in_userns max_inotify_instances 2 COMMAND...
in_userns() {
  file=/proc/sys/user/$1 value=$2 && shift 2
  unshare -U -r sh -c 'echo "$1" > "$0" && shift && exec "$@"' "$file" "$value" "$@"
}
# System calls refused as an engine's profile does: refusing NUMBER... -- COMMAND...
refusing() { "$PY" "$HERE/refuse.py" "$@"; }
