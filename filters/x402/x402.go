// Package x402 implements the payment protocol as an edge speaks it (x402, versions
// 1 and 2, scheme exact on EVM): the quote, the payment header, and what can be
// checked of a payment without asking anybody. Signatures and nonces are for the
// control plane, which runs the same checks again.
//
// A payment here is an EIP-3009 authorization: the payer signs a transfer of an
// exact value to the recipient, good within a window of time and for one nonce.
package x402

import "strconv"

// Scheme is the only scheme that is spoken.
const Scheme = "exact"

// Networks of the protocol's version 1 and their chains.
var networks = [...]struct {
	name  string
	chain uint64
}{
	{"base-sepolia", 84532}, {"base", 8453}, {"avalanche-fuji", 43113}, {"avalanche", 43114}, {"polygon", 137},
	{"polygon-amoy", 80002}, {"sei", 1329}, {"sei-testnet", 1328}, {"iotex", 4689}, {"peaq", 3338}, {"story", 1514},
	{"educhain", 41923}, {"abstract", 2741}, {"abstract-testnet", 11124},
}

// Networks returns the names of the networks that quotes may name.
func Networks() []string {
	names := make([]string, len(networks))
	for i, n := range networks {
		names[i] = n.name
	}
	return names
}

// Chain returns the chain id of a network: by its name, or as eip155:<id> as
// version 2 writes it. It is 0 for a network that is not known.
func Chain(network string) uint64 {
	for _, n := range networks {
		if n.name == network || caip(n.chain) == network {
			return n.chain
		}
	}
	return 0
}

// CAIP returns the name of a network in version 2.
func CAIP(network string) string { return caip(Chain(network)) }

// caip is the name of a chain in version 2 (CAIP-2).
func caip(chain uint64) string { return "eip155:" + strconv.FormatUint(chain, 10) }

// Terms are what every quote of a platform has in common.
type Terms struct {
	Network string // name of version 1; empty: nothing is sold
	Asset   string // address of the token
	PayTo   string // address of the recipient
	Name    string // of the token's EIP-712 domain
	Version string // of the token's EIP-712 domain
	Seconds uint32 // that a payment may be good for, and a client must make it good for
	V2      bool   // version 2 is offered too, in its header
}

// Requirement is what is asked for one request.
type Requirement struct {
	Terms
	Amount      uint64 // in the token's smallest units
	Resource    string // absolute URL
	Description string // not empty: a public client refuses the quote otherwise
	MimeType    string // the same
}

// Reason says why a payment is refused, in the words of the protocol.
type Reason string

// Reasons of refusals. Accepted is none.
const (
	Accepted         Reason = ""
	BadVersion       Reason = "invalid_x402_version"
	BadScheme        Reason = "unsupported_scheme"
	BadNetwork       Reason = "invalid_network"
	BadRequirements  Reason = "invalid_payment_requirements"
	BadRecipient     Reason = "invalid_exact_evm_payload_recipient_mismatch"
	BadAmount        Reason = "invalid_exact_evm_payload_authorization_value"
	TooEarly         Reason = "invalid_exact_evm_payload_authorization_valid_after"
	TooLate          Reason = "invalid_exact_evm_payload_authorization_valid_before"
	BadSignature     Reason = "invalid_exact_evm_payload_signature"
	NonceUsed        Reason = "invalid_exact_evm_payload_nonce_already_used"
	NoFunds          Reason = "insufficient_funds"
	Duplicate        Reason = "duplicate_settlement"
	BadState         Reason = "invalid_transaction_state"
	VerifyFailed     Reason = "unexpected_verify_error"
	SettleFailed     Reason = "unexpected_settle_error"
	SettlePending    Reason = "settlement_pending"
	HeaderIsRequired Reason = "X-PAYMENT header is required"
)

// margin is how long a payment must at least be good for when it is checked, in
// seconds: settlement takes time.
const margin = 6

// Decide checks a payment against what is asked, at now in unix seconds. What
// it accepts is fit to have its signature checked.
//
// The amount must be the one asked for: version 1 lets a payer sign more than
// that, version 2 does not, and what both make by themselves is equal.
func Decide(r Requirement, p Payment, now int64) Reason {
	if p.Scheme != Scheme {
		return BadScheme
	}
	if p.Network != r.Network && p.Network != caip(Chain(r.Network)) || Chain(p.Network) == 0 {
		return BadNetwork
	}
	if p.Version == 2 && !p.accepts(r) {
		return BadRequirements
	}
	if p.To != lower(r.PayTo) {
		return BadRecipient
	}
	if p.Value != Number(strconv.FormatUint(r.Amount, 10)) {
		return BadAmount
	}
	if p.ValidAfter.Uint64() > uint64(now) {
		return TooEarly
	}
	if p.ValidBefore.Uint64() < uint64(now)+margin {
		return TooLate
	}
	return Accepted
}

// accepts reports whether the requirement that a payment of version 2 repeats
// is the one that was made.
func (p Payment) accepts(r Requirement) bool {
	return p.Asset == lower(r.Asset) && p.PayTo == lower(r.PayTo) && p.Amount == p.Value && (p.Resource == "" || p.Resource == r.Resource)
}

// lower turns the capitals of an address into small letters.
func lower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}
