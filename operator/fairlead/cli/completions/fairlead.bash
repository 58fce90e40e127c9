# For bash: source <(fairlead completion bash)
_fairlead() {
    local line directive=0
    COMPREPLY=()
    while IFS= read -r line; do
        case $line in
            :*) directive=${line#:} ;;
            *) COMPREPLY+=("${line%%$'\t'*}") ;;
        esac
    done < <(fairlead __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
    if [[ ${#COMPREPLY[@]} -eq 0 && $directive -eq 0 ]]; then
        compopt -o default 2>/dev/null
    fi
}
complete -F _fairlead fairlead
