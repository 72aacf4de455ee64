package ipc

// NotifyTest tells the user something by each way that the configuration has.
var NotifyTest = Method[Empty, NotifyTestResponse]{Name: "notify_test", Doc: "notify_test tells the user something by each way that the configuration has (notify), and says what came of it. For persons only."}

// NotifyTestResponse says what came of each way.
type NotifyTestResponse struct {
	On   []string    `json:"on"` // of what the user is told
	Ways []NotifyWay `json:"ways"`
}

// NotifyWay is one way in which the user is told.
type NotifyWay struct {
	Way   string `json:"way"` // command, desktop, post
	Error string `json:"error,omitempty"`
}
