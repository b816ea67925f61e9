# shellcheck shell=bash
# Sourced by tests/run.sh: whether the tests on real LVM notice that a rule is taken out of the driver.

# proofs [PART OF A TEST'S NAME]: for each rule of proofs.txt, builds a copy of the sources without that rule, and runs the
# test that must fail. Two minutes for each rule.
# shellcheck disable=SC2120 # tests/run.sh hands its arguments on
proofs() {
    local copy=$DIR/proofs line name='' file='' before='' after='' ran=0 noticed=0
    mkdir "$copy"
    git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents --target-directory "$copy"
    while IFS= read -r line; do
        case $line in
            '#'*) ;;
            -*) before+=${line#-}$'\n' ;;
            +*) after+=${line#+}$'\n' ;;
            '')
                if [[ -n $name && $name == *"${1:-}"* ]]; then
                    ran=$((ran + 1))
                    ! without_rule "$copy" "$name" "$file" "$before" "$after" || noticed=$((noticed + 1))
                fi
                name='' file='' before='' after=''
                ;;
            *) if [ -z "$name" ]; then name=$line; else file=$line; fi ;;
        esac
    done < <(cat tests/proofs.txt && echo)
    [[ $ran != 0 && $ran = "$noticed" ]] || failed "proofs: only $noticed of $ran tests noticed that their rule was gone"
    echo "proofs $ran $noticed" >> "$TOP/counts"
}

# without_rule COPY TEST FILE BEFORE AFTER: whether the test fails there.
without_rule() {
    local copy=$1 name=$2 file=$3 text
    say "$name without its rule in $file"
    text=$(< "$file")
    [[ $text == *"$4"* ]] || {
        failed "$file has not the lines that tests/proofs.txt takes out for $name"
        return 1
    }
    printf '%s\n' "${text/"$4"/"$5"}" > "$copy/$file"
    # Timed as one step, whatever its own steps are.
    (cd "$copy" && timed "$name" env -u TIMES -u BOOTS CARGO_TARGET_DIR="$CACHE/proofs" tests/run.sh guest "$name") \
        > "$DIR/$name.log" 2>&1 || true
    cp "$file" "$copy/$file"
    if grep -q "test $name \.\.\. FAILED" "$DIR/$name.log"; then
        return
    fi
    tail -n 30 "$DIR/$name.log"
    failed "$name does not notice that its rule is gone"
    return 1
}
