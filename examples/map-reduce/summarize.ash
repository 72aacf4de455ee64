# Sums up every file below a directory, some at a time, and makes one overview of the summaries.
#
#     rnix sh summarize.ash DIR [PATTERN [AT_ONCE]] >overview.md

dir=${1:?the directory is missing: rnix sh summarize.ash DIR [PATTERN [AT_ONCE]]}
pattern=${2:-*.md}
at_once=${3:-4}

work=$(mktemp -d)
trap 'rm -r "$work"' EXIT

# The summary of a file: by the model that is set up, else by what stands at its beginning.
summary() {
	spawn -q "Summarise the file $1" --agent reader --budget 50k --timeout 10m || {
		echo "$1: no agent could sum it up; its beginning is used" >&2
		printf '%s\n[not summed up; its beginning:]\n' "$1"
		head -n 3 "$1"
	}
}

find "$dir" -type f -name "$pattern" | sort >"$work/files"
n=0
while read -r file; do
	n=$((n + 1))
	summary "$file" >"$work/$(printf %05d $n).txt" &
	[ $((n % at_once)) -ne 0 ] || wait
done <"$work/files"
wait
[ $n -gt 0 ] || { echo "no file below $dir is called $pattern" >&2; exit 1; }

# cat writes into the agent: one after the other, each summary is data for it.
for one in "$work"/*.txt; do
	cat "$one"
	echo
done | spawn -q "Make one overview of these summaries" --agent editor --budget 200k || cat "$work"/*.txt
