# For fish: fairlead completion fish | source
function __fairlead_complete
    set -l words (commandline -opc)
    set -l last (commandline -ct)
    set -l lines (fairlead __complete $words[2..-1] "$last" 2>/dev/null)
    if test (count $lines) -gt 1
        printf '%s\n' $lines[1..-2]
    else if test "$lines[-1]" = ':0'
        __fish_complete_path "$last"
    end
end
complete -c fairlead -f -a '(__fairlead_complete)'
