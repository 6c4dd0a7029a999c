package web

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// cookieName holds the proof of a log-in, which is not the token itself.
const cookieName = "sgtune"

// secureHeaders sets what every response carries.
func secureHeaders(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "+
			"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "same-origin") // with no-referrer a same-origin form sends Origin: null
		header.Set("Cross-Origin-Opener-Policy", "same-origin")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Permissions-Policy", "camera=(), microphone=(), geolocation=()")
		header.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

// checkHost refuses a request for a name that is not this machine's: a foreign page whose name was
// bent to our address (DNS rebinding) still says its own name. The port does not matter, so that a
// forwarded port works.
func (h *Handler) checkHost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !h.ownHost(r) {
			http.Error(w, "This page answers only to its own address. Use the address that sgtune printed.", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (h *Handler) ownHost(r *http.Request) bool {
	name := strings.ToLower(hostOnly(r.Host))
	if name == "localhost" || slices.ContainsFunc(h.opts.Hosts, func(own string) bool { return strings.EqualFold(own, name) }) {
		return true
	}
	asked := net.ParseIP(name)
	if asked == nil {
		return false
	}
	bound, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	if !ok || bound.IP.IsLoopback() {
		return asked.IsLoopback()
	}
	return asked.Equal(bound.IP)
}

// hostOnly is a Host header without its port and brackets.
func hostOnly(hostport string) string {
	if host, _, err := net.SplitHostPort(hostport); err == nil {
		return host
	}
	return strings.Trim(hostport, "[]")
}

// checkOrigin refuses a request that changes something unless it comes from one of our own pages
// or, without a browser, carries a bearer token, which no foreign page can send.
func checkOrigin(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead && !sameOrigin(r) {
			http.Error(w, "This request does not come from a page of sgtune. Open the page itself and try again there.", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func sameOrigin(r *http.Request) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" {
		return false
	}
	origins := r.Header.Values("Origin")
	if len(origins) == 0 {
		return bearer(r) != ""
	}
	origin, err := url.Parse(origins[0])
	return err == nil && len(origins) == 1 && (origin.Scheme == "http" || origin.Scheme == "https") && strings.EqualFold(origin.Host, r.Host)
}

// checkToken lets only those in who know the token, where there is one.
func (h *Handler) checkToken(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		open := r.URL.Path == "/login" || strings.HasPrefix(r.URL.Path, "/static/")
		if h.opts.Token == "" || open || h.knows(r) {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("WWW-Authenticate", `Bearer realm="sgtune"`)
		if strings.Contains(r.Header.Get("Accept"), "text/html") {
			h.render(w, r, http.StatusUnauthorized, "login.html", page{Title: "Log in"})
			return
		}
		http.Error(w, "This needs the token: send Authorization: Bearer and the value of SGTUNE_TOKEN.", http.StatusUnauthorized)
	})
}

func (h *Handler) knows(r *http.Request) bool {
	if given := bearer(r); given != "" {
		return same(given, h.opts.Token)
	}
	cookie, err := r.Cookie(cookieName)
	return err == nil && same(cookie.Value, h.proof())
}

// bearer is the token of a request, "" when it has none.
func bearer(r *http.Request) string {
	scheme, token, found := strings.Cut(r.Header.Get("Authorization"), " ")
	if !found || !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// same compares in constant time, whatever the lengths.
func same(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// proof is the cookie's value: it shows that somebody knew the token and does not give it away.
func (h *Handler) proof() string {
	mac := hmac.New(sha256.New, []byte(h.opts.Token))
	mac.Write([]byte("sgtune log-in"))
	return hex.EncodeToString(mac.Sum(nil))
}

func (h *Handler) loginForm(w http.ResponseWriter, r *http.Request) {
	h.render(w, r, http.StatusOK, "login.html", page{Title: "Log in"})
}

func (h *Handler) login(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 4096)
	if h.opts.Token != "" && !same(r.PostFormValue("token"), h.opts.Token) {
		h.render(w, r, http.StatusUnauthorized, "login.html", page{Title: "Log in", Body: "That is not the token."})
		return
	}
	http.SetCookie(w, &http.Cookie{
		Name: cookieName, Value: h.proof(), Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil,
	})
	http.Redirect(w, r, "/", http.StatusSeeOther)
}
