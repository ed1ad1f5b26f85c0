package evm

import "math/big"

// Selectors of the calls, and topics of the events, of an EIP-3009 token.
var (
	transferCall     = selector("transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,uint8,bytes32,bytes32)")
	stateCall        = selector("authorizationState(address,bytes32)")
	balanceCall      = selector("balanceOf(address)")
	TransferEvent    = Hash([]byte("Transfer(address,address,uint256)"))
	AuthorizedEvent  = Hash([]byte("AuthorizationUsed(address,bytes32)"))
	transactionType2 = []byte{2}
)

func selector(signature string) []byte {
	sum := Hash([]byte(signature))
	return sum[:4]
}

// Call is the data of the call that carries out t with the payer's signature.
func (t Transfer) Call(s Signature) []byte {
	b := append(transferCall[:4:4], t.arguments()...)
	b = append(b, word(big.NewInt(int64(s[64])))...)
	return append(b, s[:64]...)
}

// StateCall asks whether the nonce of t has been used.
func (t Transfer) StateCall() []byte {
	return append(append(stateCall[:4:4], t.From.word()...), t.Nonce[:]...)
}

// BalanceCall asks what an account has.
func BalanceCall(a Address) []byte { return append(balanceCall[:4:4], a.word()...) }

// Word is the address in 32 bytes, as topics have it.
func (a Address) Word() (w [32]byte) {
	copy(w[:], a.word())
	return w
}

// Transaction is a call of a contract with fees by EIP-1559.
type Transaction struct {
	Chain, Nonce, Gas uint64
	Tip, MaxFee       *big.Int // per gas
	To                Address
	Data              []byte
}

// Sign returns the transaction in the form that nodes take, and its hash.
func (t Transaction) Sign(k Key) (raw []byte, hash [32]byte) {
	fields := [][]byte{
		rlpNumber(new(big.Int).SetUint64(t.Chain)), rlpNumber(new(big.Int).SetUint64(t.Nonce)), rlpNumber(t.Tip), rlpNumber(t.MaxFee),
		rlpNumber(new(big.Int).SetUint64(t.Gas)), rlpBytes(t.To[:]), rlpNumber(new(big.Int)), rlpBytes(t.Data), rlpList(nil),
	}
	s := k.Sign(Hash(transactionType2, rlpList(fields)))
	fields = append(fields, rlpNumber(big.NewInt(int64(s[64]-27))), rlpNumber(new(big.Int).SetBytes(s[:32])), rlpNumber(new(big.Int).SetBytes(s[32:64])))
	raw = append(transactionType2[:1:1], rlpList(fields)...)
	return raw, Hash(raw)
}

// rlpNumber encodes a natural number: its bytes without leading zeros.
func rlpNumber(n *big.Int) []byte { return rlpBytes(n.Bytes()) }

// rlpBytes encodes a string of bytes.
func rlpBytes(b []byte) []byte {
	if len(b) == 1 && b[0] < 0x80 {
		return b
	}
	return append(rlpHead(0x80, len(b)), b...)
}

// rlpList encodes a list of encoded elements.
func rlpList(elements [][]byte) []byte {
	n := 0
	for _, e := range elements {
		n += len(e)
	}
	b := rlpHead(0xc0, n)
	for _, e := range elements {
		b = append(b, e...)
	}
	return b
}

// rlpHead says of what kind and how long something is.
func rlpHead(kind byte, n int) []byte {
	if n < 56 {
		return []byte{kind + byte(n)}
	}
	size := big.NewInt(int64(n)).Bytes()
	return append([]byte{kind + 55 + byte(len(size))}, size...)
}
