package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"sync"
	"time"

	"sluice.dev/sluice/e2e/harness"
	"sluice.dev/sluice/workers/payments/evm"
)

// header is the credential of a request.
type header struct{ name, value string }

// price of a request, in the token's smallest units.
const price = 10_000

// domain is that of USDC on base-sepolia, which the local stack quotes.
var domain = evm.Domain{Name: "USDC", Version: "2", Chain: 84532,
	Token: evm.Address{0x03, 0x6c, 0xbd, 0x53, 0x84, 0x2c, 0x54, 0x26, 0x63, 0x4e, 0x79, 0x29, 0x54, 0x1e, 0xc2, 0x31, 0x8f, 0x3d, 0xcf, 0x7e}}

// newWallet makes a payer.
func newWallet() (evm.Key, error) {
	var secret [32]byte
	rand.Read(secret[:])
	return evm.ParseKey(hex.EncodeToString(secret[:]))
}

// payments signs n payments, by the bench's payers in turn.
func (b *bed) payments(n int) []header {
	all := make([]header, n)
	for i := range all {
		all[i] = header{"X-Payment", pay(b.wallets[i%len(b.wallets)], b.payTo)}
	}
	return all
}

// pay is the header of one payment.
func pay(payer evm.Key, to evm.Address) string {
	t := evm.Transfer{From: payer.Address(), To: to, Value: big.NewInt(price), ValidAfter: new(big.Int), ValidBefore: big.NewInt(time.Now().Add(time.Hour).Unix())}
	rand.Read(t.Nonce[:])
	signature := payer.Sign(t.Digest(domain))
	return base64.StdEncoding.EncodeToString(fmt.Appendf(nil, `{"x402Version":1,"scheme":"exact","network":"base-sepolia","payload":{"signature":"0x%x","authorization":`+
		`{"from":%q,"to":%q,"value":"%d","validAfter":"0","validBefore":"%v","nonce":"0x%x"}}}`,
		signature[:], t.From, t.To, price, t.ValidBefore, t.Nonce[:]))
}

// load makes one request for each header, over that many connections.
func (b *bed) load(headers []header, connections int) (took time.Duration, latencies []time.Duration, err error) {
	next := make(chan header, len(headers))
	for _, h := range headers {
		next <- h
	}
	close(next)
	var mu sync.Mutex
	var group sync.WaitGroup
	began := time.Now()
	for range connections {
		group.Go(func() {
			for h := range next {
				at := time.Now()
				e := b.request(h)
				mu.Lock()
				latencies, err = append(latencies, time.Since(at)), errors.Join(err, e)
				mu.Unlock()
				if e != nil {
					return
				}
			}
		})
	}
	group.Wait()
	return time.Since(began), latencies, err
}

func (b *bed) request(h header) error {
	a, err := harness.Ask(context.Background(), b.client, http.MethodPost, b.Dev["SLUICE_GATEWAY_URL"]+path, "", struct{}{}, h.name, h.value)
	if err == nil {
		err = a.Into(nil)
	}
	if err == nil && h.name == "X-Payment" && a.Header.Get("X-Payment-Response") == "" {
		err = errors.New("an answer without a receipt")
	}
	return err
}
