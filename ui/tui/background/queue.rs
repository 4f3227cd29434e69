//! The way back to the screens.

use crate::tui::action::{Action, BackgroundResult};
use crate::tui::events::Message;
use std::sync::mpsc::Sender;

/// Messages to the event loop. It is no error if the program ends without receiving them.
#[derive(Clone)]
pub struct Queue(pub Sender<Message>);

impl Queue {
    /// Sends a result.
    pub fn send(&self, result: BackgroundResult) {
        self.message(Message::Action(Action::Background(result)));
    }

    /// Sends another message.
    pub fn message(&self, message: Message) {
        let _ = self.0.send(message);
    }
}
