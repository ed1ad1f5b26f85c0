package config

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/crypto/sha3"
	"sluice.dev/sluice/filters/x402"
)

// X402 says how callers without a credential pay, and whom. Zero values mean the
// defaults given.
type X402 struct {
	Network  string `json:"network"`                 // such as base-sepolia or base
	PayTo    string `json:"pay_to"`                  // address that is paid
	Asset    string `json:"asset,omitempty"`         // address of the token: USDC, on the networks of base
	Name     string `json:"token_name,omitempty"`    // of the token's EIP-712 domain
	Version  string `json:"token_version,omitempty"` // of the token's EIP-712 domain
	Decimals *uint8 `json:"decimals,omitempty"`      // of the token: 6
	// Timeout is how long a payment must be good for, and how long it may take
	// from the quote to the end of the request. 60s.
	Timeout Duration `json:"timeout,omitempty"`
	// V2 also quotes by the protocol's version 2, in the PAYMENT-REQUIRED header.
	V2 bool `json:"v2,omitempty"`
}

const (
	defaultDecimals     = 6
	maxDecimals         = 18
	defaultPaymentTime  = time.Minute
	maxPaymentTime      = time.Hour
	maxDomainTextLength = 64
)

// usdc are the tokens of networks for which the document need not name one.
// The names differ on purpose: that is what the contracts say.
var usdc = map[string]X402{
	"base-sepolia": {Asset: "0x036CbD53842c5426634e7929541eC2318f3dCF7e", Name: "USDC", Version: "2"},
	"base":         {Asset: "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913", Name: "USD Coin", Version: "2"},
}

// Terms are x's in the words of quotes; none when x is nil.
func (x *X402) Terms() x402.Terms {
	if x == nil {
		return x402.Terms{}
	}
	t := x402.Terms{Network: x.Network, PayTo: x.PayTo, Asset: x.Asset, Name: x.Name, Version: x.Version, V2: x.V2}
	t.Seconds = uint32(x.Timeout.Or(defaultPaymentTime).Seconds())
	if t.Asset == "" {
		known := usdc[x.Network]
		t.Asset, t.Name, t.Version = known.Asset, known.Name, known.Version
	}
	return t
}

// Atomic turns an amount in whole units, such as 0.01, into the token's
// smallest units; ok is false when it is not a positive amount or has more
// digits than the token.
func (x *X402) Atomic(amount string) (n uint64, ok bool) {
	if x == nil {
		return 0, false
	}
	decimals := defaultDecimals
	if x.Decimals != nil {
		decimals = int(*x.Decimals)
	}
	whole, fraction, dot := strings.Cut(amount, ".")
	if whole == "" || dot && fraction == "" || len(fraction) > decimals || strings.ContainsAny(amount, "+-_") {
		return 0, false
	}
	n, err := strconv.ParseUint(whole+fraction+strings.Repeat("0", decimals-len(fraction)), 10, 63)
	return n, err == nil && n > 0
}

func (v *validator) x402(x *X402) {
	if x == nil {
		return
	}
	if !slices.Contains(x402.Networks(), x.Network) {
		v.add("x402.network", "is not a known network", strings.Join(x402.Networks(), ", "))
	}
	v.address("x402.pay_to", x.PayTo)
	_, known := usdc[x.Network]
	if x.Asset != "" || !known {
		v.address("x402.asset", x.Asset)
		v.domainText("x402.token_name", x.Name)
		v.domainText("x402.token_version", x.Version)
	} else if x.Name != "" || x.Version != "" {
		v.add("x402.token_name", "stands without an asset", "asset, token_name and token_version, or none of them")
	}
	if x.Decimals != nil && *x.Decimals > maxDecimals {
		v.add("x402.decimals", "is too large", fmt.Sprintf("at most %d", maxDecimals))
	}
	v.duration("x402.timeout", x.Timeout)
	if t := x.Timeout.Or(defaultPaymentTime); t < 10*time.Second || t > maxPaymentTime {
		v.add("x402.timeout", "is out of bounds", "10s to 1h")
	}
}

// address checks form and, when letters are of both cases, the checksum that
// their case is (EIP-55): money that goes to a mistyped address is lost.
func (v *validator) address(field, s string) {
	if !x402.IsAddress(s) {
		v.add(field, "is not an address", "0x and 40 hexadecimal digits")
	} else if digits := s[2:]; digits != strings.ToLower(digits) && digits != strings.ToUpper(digits) && s != checksummed(digits) {
		v.add(field, "has a mistyped letter or digit: its checksum is wrong", "the address as its wallet shows it, or in small letters")
	}
}

// checksummed gives 40 hexadecimal digits the case that EIP-55 wants.
func checksummed(digits string) string {
	low := []byte(strings.ToLower(digits))
	hash := sha3.NewLegacyKeccak256()
	hash.Write(low)
	sum := hex.EncodeToString(hash.Sum(nil))
	for i, c := range low {
		if c >= 'a' && sum[i] >= '8' {
			low[i] = c - 'a' + 'A'
		}
	}
	return "0x" + string(low)
}

func (v *validator) domainText(field, s string) {
	if s == "" || len(s) > maxDomainTextLength || strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c > '~' }) {
		v.add(field, "is missing or not plain text", "as in the EIP-712 domain of the token's contract")
	}
}

// prices checks the routes that are for sale.
func (v *validator) prices(d Document) {
	speakers := d.grpcProducts()
	for i, r := range d.Routes {
		if r.Price == "" {
			continue
		}
		f := fmt.Sprintf("routes[%d].price", i)
		if _, ok := cmp.Or(d.X402, &X402{}).Atomic(r.Price); !ok {
			v.add(f, "is not an amount", "a positive decimal number such as 0.01, with no more digits than the token has")
		}
		if d.X402 == nil {
			v.add(f, "has nobody to go to", "the section x402")
		}
		if slices.Contains(r.Auth, "none") || slices.Contains(r.Auth, "session") {
			v.add(f, "stands on a route that callers without a credential reach anyway", "auth with key, token or both")
		}
		if _, ok := slices.BinarySearch(speakers, r.Product); ok {
			v.add(f, "stands on a route whose product speaks gRPC, which may fail with status 200", "a product that speaks HTTP alone")
		}
		if r.Product == "" || r.ListenerName() != Gateway {
			v.add(f, "stands on a route without a product behind the gateway", "a product that does the work")
		}
	}
}
