# Sourced by a method's setup.sh, which is told where it lies: . "$FIDOPT_INSTALL"
#
# install_packages REQUIREMENTS   makes a virtual environment at FIDOPT_ENV that holds exactly the packages of a pinned,
#                                 hashed requirements file. uv does it in seconds where fidopt found one (FIDOPT_UV);
#                                 pip does it anywhere. Bytecode is left to the first import: compiling all of it takes
#                                 longer than installing.
# install_torch VERSION REQUIREMENTS [PACKAGE ...]
#                                 the same with PyTorch of one version first, and packages built for it, from pip as it
#                                 is configured: a machine without a GPU may name an index of CPU builds, whose hashes
#                                 are not those of the ordinary index. REQUIREMENTS lists everything else, and nothing
#                                 is added to it.
install_packages() {
    "$FIDOPT_PYTHON" -m venv --without-pip "$FIDOPT_ENV" || return 1
    if [ -n "${FIDOPT_UV:-}" ] &&
        "$FIDOPT_UV" pip install --quiet --require-hashes --python "$FIDOPT_ENV/bin/python" --requirement "$1"; then
        return
    fi
    "$FIDOPT_PYTHON" -m venv --clear "$FIDOPT_ENV" || return 1
    "$FIDOPT_ENV/bin/python" -m pip install --quiet --no-input --disable-pip-version-check --no-compile \
        --require-hashes --requirement "$1"
}

install_torch() {
    "$FIDOPT_PYTHON" -m venv --clear "$FIDOPT_ENV" || return 1
    "$FIDOPT_ENV/bin/python" -m pip install --quiet --no-input --disable-pip-version-check --no-compile \
        "torch==$1" "${@:3}" || return 1
    if [ -n "${FIDOPT_UV:-}" ] && "$FIDOPT_UV" pip install --quiet --no-deps --require-hashes \
        --python "$FIDOPT_ENV/bin/python" --requirement "$2"; then
        return
    fi
    "$FIDOPT_ENV/bin/python" -m pip install --quiet --no-input --disable-pip-version-check --no-compile --no-deps \
        --require-hashes --requirement "$2"
}
