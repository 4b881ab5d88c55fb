# SPDX-License-Identifier: Apache-2.0
# What the commands of tests may use; bash reads it first.

# Kills a process of this shell, which says nothing of that, and waits until it is gone. On a slow machine it may
# have ended by itself.
slay() {
  disown "$1" 2> /dev/null
  kill -9 "$1" 2> /dev/null
  while kill -0 "$1" 2> /dev/null; do sleep 0.01; done
}

# in_time SECONDS COMMAND...: the command with --max-time SECONDS; a machine too slow to begin in that time, so that
# nothing was kept, gets eight times as long, and so on.
in_time() {
  local seconds=$1 said shown code=0
  shift
  said=$(mktemp) shown=$(mktemp)
  while true; do
    "$@" --max-time "$seconds" > "$shown" 2> "$said"
    code=$?
    grep -q 'kept nothing' "$said" || break
    seconds=$(awk "BEGIN { printf \"%.6f\", 8 * $seconds }")
  done
  cat "$shown"
  cat "$said" >&2
  rm "$shown" "$said"
  return $code
}

# The words of a page, without its markup.
words() {
  sed 's/<[^>]*>//g' "$1"
}
