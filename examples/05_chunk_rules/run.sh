#!/bin/bash
# One list of parameters, four rules for cutting it into chunks: what does each waste?
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$here/../common.sh"
cd "$here"

title 'All rules at once; the default, exact, wins or ties'
run shardscope search --config search.conf

title 'What the search of Colossal-AI 0.1.9 would have chosen, as a table for a report'
run shardscope search --config search.conf --rule gemini-v0.1.9 --format markdown

title 'Chunks of different sizes'
run shardscope search --config search.conf --rule variable

title 'Options contradict each other: exit code 78, and which to change'
must_exit 78 shardscope search --config search.conf --max-chunk 8Ki 2>&1
