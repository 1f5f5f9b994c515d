# For examples that run PyTorch, beside common.sh: an interpreter that has what they need, in $python.
python=${PYTHON:-python3}
# needs MODULE...: ends with what to install where one is absent.
needs() {
  local module
  for module in "$@"; do
    if ! "$python" -c "import importlib.util, sys; sys.exit(importlib.util.find_spec('$module') is None)"; then
      echo "$python has no $module: python3 -m venv ~/pytorch && ~/pytorch/bin/pip install $* &&" >&2
      echo "PYTHON=~/pytorch/bin/python3 $0    (PyTorch for CUDA installs without a GPU; 6 GB)" >&2
      exit 69
    fi
  done
}
