#compdef fairlead
# For zsh: source <(fairlead completion zsh)
_fairlead() {
    local line word directive=0
    local -a found
    for line in "${(@f)$(fairlead __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
        case $line in
            :*) directive=${line#:} ;;
            ?*)
                word=${line%%$'\t'*}
                if [[ $line == *$'\t'* ]]; then
                    found+=("${word//:/\\:}:${line#*$'\t'}")
                else
                    found+=("${word//:/\\:}")
                fi
                ;;
        esac
    done
    if (( ${#found} )); then
        _describe 'fairlead' found
    elif [[ $directive -eq 0 ]]; then
        _files
    fi
}
if [[ $funcstack[1] == _fairlead ]]; then
    _fairlead "$@"
else
    compdef _fairlead fairlead
fi
