package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

func serve(c net.Conn) {
	defer c.Close()
	st.conns.Add(1)
	br := bufio.NewReaderSize(c, 16<<10)
	var body []byte
	for {
		r, err := http.ReadRequest(br)
		if err != nil {
			return
		}
		if r.Header.Get("Expect") == "100-continue" {
			c.Write([]byte("HTTP/1.1 100 Continue\r\n\r\n"))
		}
		if n := r.ContentLength; n >= 0 {
			if int64(cap(body)) < n {
				body = make([]byte, n)
			}
			body = body[:n]
			_, err = io.ReadFull(r.Body, body)
		} else {
			body, err = io.ReadAll(r.Body)
		}
		if err != nil {
			return
		}
		t0 := time.Now()
		switch r.URL.Path {
		case "/v1/completions":
			err = generate(c, 'c', body, t0)
		case "/v1/chat/completions":
			err = generate(c, 'h', body, t0)
		case "/generate":
			err = generate(c, 'g', body, t0)
		case "/v1/models":
			err = plain(c, 200, "application/json", []byte(fmt.Sprintf(`{"object":"list","data":[{"id":"%s","object":"model","created":1750000000,"owned_by":"mock","root":"%s","max_model_len":131072}]}`, *model, *model)))
		case "/get_model_info", "/model_info":
			err = plain(c, 200, "application/json", []byte(fmt.Sprintf(`{"model_path":"%s","tokenizer_path":"%s","is_generation":true}`, *model, *model)))
		case "/get_server_info", "/server_info":
			err = plain(c, 200, "application/json", []byte(`{"version":"mock","internal_states":[{"last_gen_throughput":0}]}`))
		case "/health", "/health_generate", "/flush_cache":
			err = plain(c, 200, "text/plain", nil)
		case "/mock/stats":
			err = plain(c, 200, "application/json", statsJSON())
		case "/mock/reset":
			reset()
			err = plain(c, 200, "application/json", []byte("{}\n"))
		case "/metrics":
			err = plain(c, 200, "text/plain", []byte("# mock\n"))
		default:
			err = plain(c, 404, "application/json", []byte(`{"error":"not found"}`))
		}
		if err != nil || r.Close {
			return
		}
	}
}

func plain(c net.Conn, code int, ct string, body []byte) error {
	_, err := c.Write(append([]byte(fmt.Sprintf("HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n", code, http.StatusText(code), ct, len(body))), body...))
	return err
}
