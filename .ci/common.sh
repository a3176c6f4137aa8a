# What several of the scripts beside this one do. They source it.

# Installs packages of Debian, as root or with sudo.
apt_install() {
  local get=(env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300)
  [ "$(id -u)" = 0 ] || get=(sudo -n "${get[@]}")
  "${get[@]}" install --no-install-recommends "$@" ||
    { "${get[@]}" update && "${get[@]}" install --no-install-recommends "$@"; }
}

# Prints the path of uv, which installs packages of Python in a tenth of the time that pip takes; fails where it cannot be had.
uv_program() {
  local home
  command -v uv && return
  home=$(realpath -m "${CARGO_TARGET_DIR:-target}")/uv
  if ! [ -x "$home/bin/uv" ]; then
    python3 -m venv --clear "$home" >&2 && "$home/bin/python" -m pip install --quiet 'uv>=0.9,<1' >&2 || return 1
  fi
  echo "$home/bin/uv"
}

# new_environment FOLDER: makes an environment of Python without packages.
new_environment() {
  # Debian keeps the part of Python that a new environment is made from in a package of its own.
  python3 -c 'import ensurepip, venv' 2>/dev/null || apt_install python3-venv
  if uv_program >/dev/null; then python3 -m venv --clear --without-pip "$1"; else python3 -m venv --clear "$1"; fi
}

# install_packages PYTHON OPTION|PACKAGE...: installs packages where a Python finds them. Their modules are not compiled here: they are
# many, few are imported, and Python compiles those at their first import and keeps them.
install_packages() {
  local python=$1 uv
  shift
  if uv=$(uv_program); then
    UV_SYSTEM_CERTS=1 "$uv" pip install --quiet --python "$python" "$@"
  else
    "$python" -m pip install --quiet --no-compile "$@"
  fi
}

# compile_on_import FOLDER: from here on what Python compiles is kept in the folder, for all processes, and not among the sources.
compile_on_import() {
  export PYTHONPYCACHEPREFIX=$1
  unset PYTHONDONTWRITEBYTECODE
}

# Prints the full path of the Python that has the readers of our files: TRACEQUET_PYTHON, or the environment that .ci/packages makes.
readers_python() {
  local python
  for python in ${TRACEQUET_PYTHON:+"$TRACEQUET_PYTHON"} target/venv/bin/python; do
    # All that tests import: this compiles it once, where the tests would compile it again and again.
    if "$python" -c 'import duckdb, pandas, polars, pyarrow.feather, pyarrow.parquet, pytz' 2>/dev/null; then
      "$python" -c 'import os, sys; print(os.path.abspath(sys.executable))'
      return
    fi
  done
  return 1
}

# cross TARGET...: gets the standard libraries of other systems from rustup. Where there is no rustup, or its server is out of
# reach, cross_cargo compiles them from the source of Debian's compiler (-Zbuild-std). TRACEQUET_BUILD_STD=1 takes that way.
cross() {
  cross_options=()
  if [ "${TRACEQUET_BUILD_STD:-}" != 1 ] && command -v rustup >/dev/null && timeout 300 rustup --quiet target add "$@"; then
    return
  fi
  local packages=(rustc-web cargo-web rust-web-src)
  dpkg -s "${packages[@]}" >/dev/null 2>&1 || apt_install "${packages[@]}"
  cross_options=(-Zbuild-std=std,panic_unwind)
}

# cross_cargo COMMAND OPTION...: cargo for the targets of `cross`.
cross_cargo() {
  if [ ${#cross_options[@]} = 0 ]; then
    cargo "$1" --locked "${@:2}"
  else
    # By its full path and for this call only: ~/.cargo/bin has to be first on PATH for everything else.
    RUSTC_BOOTSTRAP=1 PATH=/usr/bin:/bin /usr/bin/cargo "$1" --locked "${cross_options[@]}" "${@:2}"
  fi
}
