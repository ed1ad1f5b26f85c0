package x402

import (
	"encoding/base64"
	"strconv"

	"sluice.dev/sluice/filters/caps/jsonscan"
)

// Payment is a payment as a client sends it. Addresses, nonce and signature are
// hexadecimal in small letters with 0x in front, so that each payment has one
// spelling here, however the client wrote it.
type Payment struct {
	Version uint8 // of the protocol: 1 or 2
	Scheme  string
	Network string

	From, To                       string
	Value, ValidAfter, ValidBefore Number
	Nonce                          string // 32 bytes
	Signature                      string // 65 bytes: r, s, v

	// What a payment of version 2 repeats of the quote; else empty.
	Asset, PayTo, Resource string
	Amount                 Number
}

// Number is a natural number below 2^256 in decimal, without leading zeros.
type Number string

// Uint64 is the number, or the largest uint64 when it is larger.
func (n Number) Uint64() uint64 {
	v, err := strconv.ParseUint(string(n), 10, 64)
	if err != nil {
		return 1<<64 - 1
	}
	return v
}

// MaxHeader bounds the payment header, in bytes. Payments take about 700.
const MaxHeader = 8192

const maxDepth = 8

// Decode undoes the base64 of a payment header and returns the JSON in it. It
// takes the one spelling that the protocol has: the standard alphabet, padded,
// no stray bits. issue says what is wrong; it is empty when all is well.
//
// It takes time linear in the header, of which it looks at no more than
// MaxHeader bytes, and allocates at most 4 bytes for each of them.
func Decode(header string) (text []byte, issue string) {
	if len(header) > MaxHeader {
		return nil, "is longer than 8192 bytes"
	}
	text, err := base64.StdEncoding.Strict().DecodeString(header)
	if err != nil || base64.StdEncoding.EncodeToString(text) != header { // the decoder skips line ends
		return nil, "is not base64 in the standard alphabet with padding"
	}
	return text, ""
}

// Parse reads the JSON of a payment, which has no white space around it and
// little inside. Every field that it knows must be there once, in plain text of
// its one form; those that it does not know are left out. issue says what is
// wrong first, in words of ours; it is empty when all is well.
//
// It takes time linear in the text, of which it looks at no more than MaxHeader
// bytes, and allocates at most 8 bytes for each of them, and 4 KiB.
func Parse(text []byte) (p Payment, issue string) {
	if len(text) > MaxHeader {
		return p, "is longer than 8192 bytes"
	}
	if err := jsonscan.Compact(text, maxDepth); err != nil {
		return p, "is not JSON: " + err.Issue
	}
	o := object{text: text, at: jsonscan.Root(text)}
	switch version := o.number("x402Version"); version {
	case "1":
		p.Version, p.Scheme, p.Network = 1, o.str("scheme"), o.str("network")
	case "2":
		p.Version = 2
		accepted := o.object("accepted")
		p.Scheme, p.Network = accepted.str("scheme"), accepted.str("network")
		p.Asset, p.PayTo, p.Amount = accepted.hex("asset", 20), accepted.hex("payTo", 20), accepted.decimal("amount")
		if o.find("resource").there() {
			resource := o.object("resource")
			p.Resource = resource.str("url")
			o.take(resource)
		}
		o.take(accepted)
	default:
		o.fail("x402Version is not 1 or 2")
	}
	payload := o.object("payload")
	a := payload.object("authorization")
	p.Signature = payload.hex("signature", 65)
	p.From, p.To, p.Nonce = a.hex("from", 20), a.hex("to", 20), a.hex("nonce", 32)
	p.Value, p.ValidAfter, p.ValidBefore = a.decimal("value"), a.decimal("validAfter"), a.decimal("validBefore")
	payload.take(a)
	o.take(payload)
	if o.issue != "" {
		return Payment{}, o.issue
	}
	return p, ""
}
