# What several of the scripts beside this one do. They source it.

# Installs packages of Debian, as root or with sudo.
apt_install() {
  local get=(env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300)
  [ "$(id -u)" = 0 ] || get=(sudo -n "${get[@]}")
  "${get[@]}" install --no-install-recommends "$@" ||
    { "${get[@]}" update && "${get[@]}" install --no-install-recommends "$@"; }
}

# Prints the full path of the Python that has the readers of our files: TRACEQUET_PYTHON, or the environment that .ci/packages makes.
readers_python() {
  local python
  for python in ${TRACEQUET_PYTHON:+"$TRACEQUET_PYTHON"} target/venv/bin/python; do
    if "$python" -c 'import duckdb, pandas, polars, pyarrow, pytz' 2>/dev/null; then
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
