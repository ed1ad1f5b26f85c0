package x402_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"

	"sluice.dev/sluice/filters/x402"
)

// One call for 0.01 USDC (six decimals) on the test network.
var price = x402.Requirement{
	Terms:    x402.Terms{Network: "base-sepolia", Asset: asset, PayTo: shop, Name: "USDC", Version: "2", Seconds: 60},
	Amount:   10_000,
	Resource: "https://api.example.com/v1/clips", Description: "One clip", MimeType: "application/json",
}

func ExampleAppendRequirement() {
	var quote bytes.Buffer
	if err := json.Indent(&quote, x402.AppendRequirement(nil, price), "", "  "); err != nil {
		fmt.Println(err)
	}
	fmt.Println(quote.String())
	// Output:
	// {
	//   "scheme": "exact",
	//   "network": "base-sepolia",
	//   "maxAmountRequired": "10000",
	//   "resource": "https://api.example.com/v1/clips",
	//   "description": "One clip",
	//   "mimeType": "application/json",
	//   "payTo": "0x209693Bc6afc0C5328bA36FaF03C514EF312287C",
	//   "maxTimeoutSeconds": 60,
	//   "asset": "0x036CbD53842c5426634e7929541eC2318f3dCF7e",
	//   "extra": {
	//     "name": "USDC",
	//     "version": "2"
	//   }
	// }
}

// What an edge does with the X-PAYMENT header of a request: decode it, parse it,
// and compare it with the quote. The hub then checks signature and nonce.
func ExampleDecide() {
	header := base64.StdEncoding.EncodeToString([]byte(v1()))
	text, issue := x402.Decode(header)
	if issue != "" {
		fmt.Println("400:", issue)
		return
	}
	payment, issue := x402.Parse(text)
	if issue != "" {
		fmt.Println("400:", issue)
		return
	}
	fmt.Printf("in time: %q\n", x402.Decide(price, payment, 1500))
	fmt.Printf("too late: %q\n", x402.Decide(price, payment, 2000))
	// Output:
	// in time: ""
	// too late: "invalid_exact_evm_payload_authorization_valid_before"
}

func ExampleParse() {
	_, issue := x402.Parse([]byte(`{"x402Version":1,"scheme":"exact"}`))
	fmt.Println(issue)
	// Output: network is not a string
}
