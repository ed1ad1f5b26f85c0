package chain

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"strings"

	"sluice.dev/sluice/platform/outbound"
	"sluice.dev/sluice/workers/payments/evm"
)

// node is a JSON-RPC node.
type node struct {
	url    string
	client *outbound.Client
}

// failure is an error that the node answers: the call was heard and refused.
type failure struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// Error gives the node's words.
func (f *failure) Error() string { return fmt.Sprintf("node: %s (%d)", f.Message, f.Code) }

// reverted reports whether the contract refused the call.
func (f *failure) reverted() bool { return f.Code == 3 || strings.Contains(f.Message, "revert") }

// call makes one call and decodes its result; a result of null leaves out as it is.
func (n node) call(ctx context.Context, out any, method string, params ...any) error {
	if params == nil {
		params = []any{}
	}
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	if err != nil {
		return err
	}
	r, err := n.client.Do(ctx, outbound.Request{Method: http.MethodPost, URL: n.url, Header: http.Header{"Content-Type": {"application/json"}}, Body: body})
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	var answer struct {
		Result json.RawMessage `json:"result"`
		Error  *failure        `json:"error"`
	}
	if err := json.Unmarshal(r.Body, &answer); err != nil {
		return fmt.Errorf("%s: the node answered %d without JSON", method, r.Status)
	}
	if answer.Error != nil {
		return fmt.Errorf("%s: %w", method, answer.Error)
	}
	if err := json.Unmarshal(answer.Result, out); err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	return nil
}

// quantity is a number as nodes write it: 0x and digits.
type quantity struct{ big.Int }

// maxQuantity is the length of the longest quantity: 256 bits.
const maxQuantity = 2 + 64

// UnmarshalJSON reads a quantity, in time and memory in proportion to b.
func (q *quantity) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	digits, ok := strings.CutPrefix(s, "0x")
	if !ok {
		return fmt.Errorf("%q is not a quantity", s)
	}
	if len(s) > maxQuantity {
		return errors.New("a quantity has more than 256 bits")
	}
	if digits == "" { // an empty answer of a call: no contract there
		return nil
	}
	if _, ok := q.SetString(digits, 16); !ok || digits[0] == '-' || digits[0] == '+' {
		return fmt.Errorf("%q is not a quantity", s)
	}
	return nil
}

func hexOf(b []byte) string { return "0x" + hex.EncodeToString(b) }

// message is a call of a contract.
func message(from, to evm.Address, data []byte) map[string]string {
	return map[string]string{"from": from.String(), "to": to.String(), "data": hexOf(data)}
}

// ask calls a contract without a transaction and returns the number it answers.
func (n node) ask(ctx context.Context, to evm.Address, data []byte) (*big.Int, error) {
	var q quantity
	err := n.call(ctx, &q, "eth_call", message(evm.Address{}, to, data), "latest")
	return &q.Int, err
}

// number makes a call that answers a number without parameters of its own.
func (n node) number(ctx context.Context, method string, params ...any) (*big.Int, error) {
	var q quantity
	err := n.call(ctx, &q, method, params...)
	return &q.Int, err
}

// event is a log of a receipt.
type event struct {
	Address string   `json:"address"`
	Topics  []string `json:"topics"`
	Data    string   `json:"data"`
	Hash    string   `json:"transactionHash"`
}

// receipt is what became of a transaction; nil: it is not in the chain.
type receipt struct {
	Status    quantity `json:"status"`
	Block     quantity `json:"blockNumber"`
	BlockHash string   `json:"blockHash"`
	Logs      []event  `json:"logs"`
}

func (n node) receipt(ctx context.Context, hash string) (r *receipt, err error) {
	err = n.call(ctx, &r, "eth_getTransactionReceipt", hash)
	return r, err
}
