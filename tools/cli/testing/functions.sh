# SPDX-License-Identifier: Apache-2.0
# What the commands of tests may use; bash reads it first.

# Kills a process of this shell, which says nothing of that, and waits until it is gone. On a slow machine it may
# have ended by itself.
slay() {
  disown "$1" 2> /dev/null
  kill -9 "$1" 2> /dev/null
  while kill -0 "$1" 2> /dev/null; do sleep 0.01; done
}

# The words of a page, without its markup.
words() {
  sed 's/<[^>]*>//g' "$1"
}
