package chain_test

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"sluice.dev/sluice/workers/payments/evm"
)

// fakeNode is a chain with one token, as a JSON-RPC node shows it. It decodes
// and judges transactions by itself, and mines when it is told to.
type fakeNode struct {
	*httptest.Server
	mu       sync.Mutex
	chain    uint64
	balances map[evm.Address]*big.Int
	used     map[string]bool // payer and nonce
	counts   map[evm.Address]uint64
	pool     map[string]sentTx
	blocks   [][]mined // of each block from 1
	epoch    int       // counts reorganisations: it is part of block hashes
	calls    map[string]int
	broken   map[string]int // calls of a method that will get no answer
	last     decodedTx      // that was sent
	gas, fee string         // what an estimate and the price of gas are; empty: usual ones
	auto     bool           // a block comes with each transaction, and each look at the chain's length
	onSend   func()
}

// sentTx is a transaction that was decoded and waits for a block.
type sentTx struct {
	hash string
	from evm.Address
	tx   decodedTx
}

type mined struct {
	hash   string
	status int
	logs   []map[string]any
}

func newNode(t *testing.T) *fakeNode {
	n := &fakeNode{chain: 84532, balances: map[evm.Address]*big.Int{}, used: map[string]bool{}, counts: map[evm.Address]uint64{},
		pool: map[string]sentTx{}, calls: map[string]int{}, broken: map[string]int{}}
	n.Server = httptest.NewServer(http.HandlerFunc(n.serve))
	t.Cleanup(n.Close)
	return n
}

func (n *fakeNode) serve(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Method string
		Params []json.RawMessage
	}
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.calls[q.Method]++
	result, err := n.answer(q.Method, q.Params)
	if n.broken[q.Method] > 0 { // it was done, but nobody hears of it
		n.broken[q.Method]--
		http.Error(w, "bad gateway", http.StatusBadGateway)
		return
	}
	answer := map[string]any{"jsonrpc": "2.0", "id": 1, "result": result}
	if err != nil {
		answer = map[string]any{"jsonrpc": "2.0", "id": 1, "error": map[string]any{"code": 3, "message": err.Error()}}
	}
	_ = json.NewEncoder(w).Encode(answer)
}

func (n *fakeNode) answer(method string, params []json.RawMessage) (any, error) {
	text := func(i int) (s string) { _ = json.Unmarshal(params[i], &s); return s }
	var call struct{ From, To, Data string }
	switch method {
	case "eth_chainId":
		return fmt.Sprintf("0x%x", n.chain), nil
	case "eth_blockNumber":
		if n.auto {
			n.mineLocked()
		}
		return fmt.Sprintf("0x%x", len(n.blocks)), nil
	case "eth_maxPriorityFeePerGas":
		return "0x3b9aca00", nil
	case "eth_gasPrice":
		return cmp.Or(n.fee, "0x64"), nil
	case "eth_call":
		_ = json.Unmarshal(params[0], &call)
		return n.view(mustHex(call.Data)), nil
	case "eth_estimateGas":
		_ = json.Unmarshal(params[0], &call)
		_, err := n.judge(mustHex(call.Data))
		return cmp.Or(n.gas, "0x186a0"), err
	case "eth_getTransactionCount":
		a, _ := evm.ParseAddress(text(0))
		count := n.counts[a]
		if text(1) == "pending" {
			for _, tx := range n.pool {
				if tx.from == a {
					count++
				}
			}
		}
		return fmt.Sprintf("0x%x", count), nil
	case "eth_sendRawTransaction":
		return n.take(mustHex(text(0)))
	case "eth_getTransactionReceipt":
		return n.receipt(text(0)), nil
	case "eth_getLogs":
		var q struct{ Topics []string }
		_ = json.Unmarshal(params[0], &q)
		return n.logs(q.Topics), nil
	}
	return nil, fmt.Errorf("no method %s", method)
}

// view answers balanceOf and authorizationState.
func (n *fakeNode) view(data []byte) string {
	who := evm.Address(data[16:36])
	if len(data) == 4+32 {
		return fmt.Sprintf("0x%064x", n.balance(who))
	}
	if n.used[string(data[4:68])] {
		return fmt.Sprintf("0x%064x", 1)
	}
	return fmt.Sprintf("0x%064x", 0)
}

func (n *fakeNode) balance(a evm.Address) *big.Int {
	if n.balances[a] == nil {
		n.balances[a] = new(big.Int)
	}
	return n.balances[a]
}

// tokenCall is a transferWithAuthorization, decoded.
type tokenCall struct {
	evm.Transfer
	sig evm.Signature
}

func (c tokenCall) key() string {
	from := c.From.Word()
	return string(from[:]) + string(c.Nonce[:])
}

// judge says whether the token would carry out a call, as the contract does.
func (n *fakeNode) judge(data []byte) (c tokenCall, err error) {
	if len(data) != 4+9*32 || hex.EncodeToString(data[:4]) != "e3ee160e" {
		return c, fmt.Errorf("execution reverted: no such function")
	}
	words := slices.Collect(slices.Chunk(data[4:], 32))
	c.From, c.To, c.Nonce = evm.Address(words[0][12:]), evm.Address(words[1][12:]), [32]byte(words[5])
	c.Value, c.ValidAfter, c.ValidBefore = new(big.Int).SetBytes(words[2]), new(big.Int).SetBytes(words[3]), new(big.Int).SetBytes(words[4])
	copy(c.sig[:], words[7])
	copy(c.sig[32:], words[8])
	c.sig[64] = words[6][31]
	signer, ok := c.sig.Signer(c.Digest(domain))
	switch {
	case !ok || signer != c.From:
		return c, fmt.Errorf("execution reverted: FiatTokenV2: invalid signature")
	case n.used[c.key()]:
		return c, fmt.Errorf("execution reverted: FiatTokenV2: authorization is used or canceled")
	case n.balance(c.From).Cmp(c.Value) < 0:
		return c, fmt.Errorf("execution reverted: ERC20: transfer amount exceeds balance")
	}
	return c, nil
}

// take puts a transaction into the pool.
func (n *fakeNode) take(raw []byte) (string, error) {
	sum := evm.Hash(raw)
	hash := "0x" + hex.EncodeToString(sum[:])
	tx, from, err := decode(raw)
	if err != nil {
		return "", err
	}
	if tx.chain != n.chain || tx.nonce < n.counts[from] || n.pool[hash].hash != "" {
		return "", fmt.Errorf("nonce too low, already known, or of another chain")
	}
	n.pool[hash], n.last = sentTx{hash, from, tx}, tx
	if n.auto {
		n.mineLocked()
	}
	if n.onSend != nil {
		n.onSend()
	}
	return hash, nil
}

// mine makes a block of what is in the pool and in turn.
func (n *fakeNode) mine() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mineLocked()
}

func (n *fakeNode) mineLocked() {
	var block []mined
	for again := true; again; {
		again = false
		for hash, tx := range n.pool {
			if tx.tx.nonce != n.counts[tx.from] {
				continue
			}
			delete(n.pool, hash)
			n.counts[tx.from]++
			block = append(block, n.execute(hash, tx.tx.data))
			again = true
		}
	}
	n.blocks = append(n.blocks, block)
}

func (n *fakeNode) execute(hash string, data []byte) mined {
	c, err := n.judge(data)
	if err != nil {
		return mined{hash: hash}
	}
	n.used[c.key()] = true
	n.balance(c.From).Sub(n.balance(c.From), c.Value)
	n.balance(c.To).Add(n.balance(c.To), c.Value)
	from, to := c.From.Word(), c.To.Word()
	word := func(b [32]byte) string { return "0x" + hex.EncodeToString(b[:]) }
	return mined{hash, 1, []map[string]any{
		{"address": domain.Token.String(), "topics": []string{word(evm.AuthorizedEvent), word(from), word(c.Nonce)}, "data": "0x", "transactionHash": hash},
		{"address": domain.Token.String(), "topics": []string{word(evm.TransferEvent), word(from), word(to)}, "data": fmt.Sprintf("0x%064x", c.Value), "transactionHash": hash},
	}}
}

// drop takes the newest block out of the chain, with the one transaction that
// is in it and all that this did, as if it had never been heard of.
func (n *fakeNode) drop(t *testing.T, from evm.Address) {
	t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	last := n.blocks[len(n.blocks)-1]
	if len(last) != 1 || last[0].status != 1 {
		t.Fatalf("%+v", last)
	}
	n.blocks = n.blocks[:len(n.blocks)-1]
	n.epoch++
	clear(n.used)
	for a := range n.balances {
		n.balances[a] = big.NewInt(map[bool]int64{true: 50_000}[a == payer.Address()])
	}
	n.counts[from]--
}

func (n *fakeNode) receipt(hash string) any {
	for i, block := range n.blocks {
		for _, m := range block {
			if m.hash == hash {
				return map[string]any{"status": fmt.Sprintf("0x%x", m.status), "blockNumber": fmt.Sprintf("0x%x", i+1),
					"blockHash": fmt.Sprintf("0x%d-%d", n.epoch, i+1), "logs": m.logs}
			}
		}
	}
	return nil
}

func (n *fakeNode) logs(topics []string) []map[string]any {
	found := []map[string]any{}
	for _, block := range n.blocks {
		for _, m := range block {
			for _, l := range m.logs {
				if slices.Equal(l["topics"].([]string), topics) {
					found = append(found, l)
				}
			}
		}
	}
	return found
}

func mustHex(s string) []byte {
	b, err := hex.DecodeString(strings.TrimPrefix(s, "0x"))
	if err != nil {
		panic(err)
	}
	return b
}

// decodedTx is an EIP-1559 transaction as a node reads it.
type decodedTx struct {
	chain, nonce, gas uint64
	tip, fee          uint64
	data              []byte
}

// decode reads a raw transaction and recovers who signed it.
func decode(raw []byte) (tx decodedTx, from evm.Address, err error) {
	if len(raw) == 0 || raw[0] != 2 {
		return tx, from, fmt.Errorf("not a transaction of type 2")
	}
	body, _ := item(raw[1:])
	var fields, texts [][]byte
	for rest := body; len(rest) > 0; {
		text, size := item(rest)
		texts, fields = append(texts, rest[:size]), append(fields, text)
		rest = rest[size:]
	}
	if len(fields) != 12 {
		return tx, from, fmt.Errorf("%d fields", len(fields))
	}
	number := func(i int) uint64 { return new(big.Int).SetBytes(fields[i]).Uint64() }
	tx = decodedTx{chain: number(0), nonce: number(1), gas: number(4), tip: number(2), fee: number(3), data: fields[7]}
	unsigned := slices.Concat(texts[:9]...)
	head := []byte{0xf7 + 1, byte(len(unsigned))}
	if len(unsigned) > 255 {
		head = []byte{0xf7 + 2, byte(len(unsigned) >> 8), byte(len(unsigned))}
	}
	var sig evm.Signature
	new(big.Int).SetBytes(fields[10]).FillBytes(sig[:32])
	new(big.Int).SetBytes(fields[11]).FillBytes(sig[32:64])
	sig[64] = 27 + byte(number(9))
	from, ok := sig.Signer(evm.Hash([]byte{2}, head, unsigned))
	if !ok || evm.Address(fields[5]) != domain.Token {
		return tx, from, fmt.Errorf("invalid sender or recipient")
	}
	return tx, from, nil
}

// item reads one RLP item: its contents, and the bytes that it takes.
func item(b []byte) (contents []byte, size int) {
	switch c := b[0]; {
	case c < 0x80:
		return b[:1], 1
	case c < 0xb8, c >= 0xc0 && c < 0xf8:
		n := int(c & 0x3f)
		return b[1 : 1+n], 1 + n
	default:
		k := int(c&0x3f) - 55
		n := int(new(big.Int).SetBytes(b[1 : 1+k]).Int64())
		return b[1+k : 1+k+n], 1 + k + n
	}
}
