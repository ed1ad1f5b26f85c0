// Package tool pins stripe-mock, the stand-in for Stripe's API that Stripe publishes. It is a
// module of its own, so that what it needs is no dependency of the product.
package tool

import (
	_ "github.com/stripe/stripe-mock" // a server that holds requests against Stripe's OpenAPI document
)
