// Order of the groups.
uint256 constant R = 21888242871839275222246405745257275088548364400416034343698204186575808495617;

// An integer modulo R.
type Fr is uint256;
using {plus as +, minus as -, times as *} for Fr global;

function plus(Fr x, Fr y) pure returns (Fr) {
    return Fr.wrap(addmod(Fr.unwrap(x), Fr.unwrap(y), R));
}

function minus(Fr x, Fr y) pure returns (Fr) {
    unchecked {
        return Fr.wrap(addmod(Fr.unwrap(x), R - Fr.unwrap(y), R));
    }
}

function times(Fr x, Fr y) pure returns (Fr) {
    return Fr.wrap(mulmod(Fr.unwrap(x), Fr.unwrap(y), R));
}

