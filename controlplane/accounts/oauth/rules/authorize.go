package rules

// maxState bounds the client's state, in bytes.
const maxState = 2048

// Client is what the rules need to know of an application.
type Client struct {
	PKCE         bool // it must use it
	RedirectURIs []string
	Scopes       []string // the most that it may ask for
}

// Request is an authorization request that may be put to a person.
type Request struct {
	Redirect  string   // where the answer goes
	Named     bool     // the request named Redirect, so the exchange must too
	Scopes    []string // alphabetical, not empty, within the client's
	State     string
	Challenge string // PKCE, S256; empty: none
}

// Redirect decides where the answer to an authorization request goes. When it
// fails, the person must be told, and nobody be sent anywhere: the address may be
// an attacker's.
func Redirect(f Form, c Client) (address string, named bool, bad *Error) {
	asked := f.Get("redirect_uri")
	switch {
	case f.Repeated("client_id", "redirect_uri"):
		return "", false, refuse(InvalidRequest, "client_id or redirect_uri is given more than once.")
	case asked == "" && len(c.RedirectURIs) == 1:
		return c.RedirectURIs[0], false, nil
	case asked == "":
		return "", false, refuse(InvalidRequest, "redirect_uri is missing.")
	case len(asked) > MaxRedirect || !RedirectMatches(c.RedirectURIs, asked):
		return "", false, refuse(InvalidRequest, "redirect_uri is not registered for this application.")
	}
	return asked, true, nil
}

// Authorize reads an authorization request whose redirect address is good. Its
// errors go there. Without a scope, all of the client's are asked for. It costs time
// linear in the form, which holds at most MaxForm bytes, and its errors quote nothing.
func Authorize(f Form, c Client) (Request, *Error) {
	q := Request{State: f.Get("state"), Challenge: f.Get("code_challenge")}
	q.Redirect, q.Named, _ = Redirect(f, c)
	switch kind := f.Get("response_type"); {
	case len(q.State) > maxState || !Printable(q.State):
		q.State = ""
		return q, refuse(InvalidRequest, "state is too long, or holds characters that it may not.")
	case f.Repeated():
		return q, refuse(InvalidRequest, "A parameter is given more than once.")
	case kind == "":
		return q, refuse(InvalidRequest, "response_type is missing.")
	case kind != "code":
		return q, refuse(UnsupportedResponseType, "response_type must be code.")
	case f.Get("response_mode") != "" && f.Get("response_mode") != "query":
		return q, refuse(InvalidRequest, "response_mode must be query.")
	case f.Get("request") != "" || f.Get("request_uri") != "":
		return q, refuse(InvalidRequest, "Request objects are not supported.")
	}
	if bad := checkChallenge(q.Challenge, f.Get("code_challenge_method"), c.PKCE); bad != nil {
		return q, bad
	}
	var bad *Error
	q.Scopes, bad = askedScopes(f.Get("scope"), c.Scopes)
	return q, bad
}

// checkChallenge refuses the method plain, which is also what no method means.
func checkChallenge(challenge, method string, required bool) *Error {
	switch {
	case challenge == "" && required:
		return refuse(InvalidRequest, "code_challenge is missing: this application must use PKCE.")
	case challenge == "" && method != "":
		return refuse(InvalidRequest, "code_challenge is missing.")
	case challenge != "" && method != "S256":
		return refuse(InvalidRequest, "code_challenge_method must be S256.")
	case challenge != "" && !isChallenge(challenge):
		return refuse(InvalidRequest, "code_challenge is not a SHA-256 in base64url.")
	}
	return nil
}

// askedScopes are those in text, all within most, or most itself when text is empty.
func askedScopes(text string, most []string) ([]string, *Error) {
	list, bad := Scopes(text)
	if bad != nil {
		return nil, bad
	}
	if len(list) == 0 {
		return most, nil
	}
	if _, all := Within(most, list); !all {
		return nil, refuse(InvalidScope, "A scope is not one that this application may ask for.")
	}
	return list, nil
}
