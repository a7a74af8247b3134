# What is checked out is checked, in the folder below. GATE_SKIP=1 git push, or git push --no-verify: not this time.
say() {
    printf 'gate: %s\n' "$*" >&2
}

case ${GATE_SKIP:-0} in
    0) ;;
    *)
        say 'GATE_SKIP is set: this push is not checked'
        exit 0
        ;;
esac

# Git says what is pushed, one ref a line. What is deleted, tags and notes are nothing to measure.
pushed=
while read -r _ id ref _; do
    case $ref in
        refs/tags/* | refs/notes/* | refs/gate/*) continue ;;
    esac
    case $id in
        *[!0]*) pushed=yes ;;
    esac
done
[ -n "$pushed" ] || exit 0

# Git tells its hooks which repository it works in; gate and its git find it by the folder they run in.
for name in $(git rev-parse --local-env-vars 2>/dev/null); do
    unset "$name"
done

folder=@FOLDER@
if ! cd "$folder" 2>/dev/null || ! [ -d gates ]; then
    say "there is no folder gates in $folder of this checkout: this push is not checked"
    exit 0
fi

gate=$(command -v gate) || gate=@PROGRAM@
if ! [ -x "$gate" ]; then
    say 'the program gate is not on PATH, nor where it was when this hook was installed: this push is not checked'
    exit 0
fi

GATE_HOOK=1 "$gate" check </dev/null
code=$?
case $code in
    0) exit 0 ;;
    3)
        say 'could not measure, as said above (is a server running, and are its variables set?): the push goes on unchecked'
        exit 0
        ;;
    4)
        say 'inconclusive, as said above: the push goes on'
        exit 0
        ;;
    1) say 'a required check is violated: the push is stopped' ;;
    2) say 'a spec is wrong: the push is stopped' ;;
    130) say 'interrupted: the push is stopped' ;;
    *) say "gate check ended with $code: the push is stopped" ;;
esac
say 'to push all the same: GATE_SKIP=1 git push, or git push --no-verify'
exit 1
