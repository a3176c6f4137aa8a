//! What the ids in event headers refer to: kinds of events, threads, labels. All of it is bounded, since a file can
//! make up ids at the cost of a few bytes each; what does not fit is replaced by one stand-in that says so.

use super::header::Header;
use super::state::{Cached, State};
use crate::error::{Problem, Severity};
use crate::reader::{EventType, Labels, Layout, Thread, ThreadIndex, TypeId, Visitor};

/// Kinds of events in one recording; the last place is for all that do not fit.
const MAX_TYPES: usize = 1 << 17;
/// Metadata ids in use at a time.
const MAX_IDS: usize = 1 << 20;
/// Threads in one recording; the last place is for all that do not fit.
const MAX_THREADS: usize = 1 << 20;
/// Label lists between two sequence points.
pub const MAX_LABELS: usize = 1 << 20;

/// Label overrides of an event's type (V6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Overrides {
    pub opcode: Option<u8>,
    pub keywords: Option<u64>,
    pub level: Option<u8>,
    pub version: Option<u8>,
}

impl<V: Visitor> State<'_, '_, V> {
    /// Interns a kind of event.
    pub fn intern_type(&mut self, event_type: EventType) -> TypeId {
        if let Some(id) = self.type_by_content.get(&event_type) {
            return *id;
        }
        if self.types.len() >= MAX_TYPES {
            return TypeId(MAX_TYPES as u32 - 1);
        }
        if self.types.len() == MAX_TYPES - 1 {
            let message =
                format!("more than {MAX_TYPES} kinds of events; those of the others are kept raw as one kind");
            self.problem(Problem::new(Severity::DataLoss, "too_many_event_types", 0, message));
            return self.new_type(unknown_type("other_events".to_owned()));
        }
        self.new_type(event_type)
    }

    fn new_type(&mut self, event_type: EventType) -> TypeId {
        let id = TypeId(self.types.len() as u32);
        self.wanted.push(self.visitor.event_type(id, &event_type));
        self.types.push(event_type.clone());
        self.type_by_content.insert(event_type, id);
        id
    }

    /// Binds a metadata id to a kind of event. A second, different binding is reported; the last one counts.
    pub fn define_metadata(&mut self, id: u32, event_type: EventType, offset: u64) {
        let type_id = self.intern_type(event_type);
        if self.metadata.len() >= MAX_IDS && !self.metadata.contains_key(&id) {
            let message = format!("more than {MAX_IDS} metadata ids; events of the others are kept raw");
            self.problem(Problem::new(Severity::DataLoss, "too_many_metadata_ids", offset, message));
            return;
        }
        if let Some(before) = self.metadata.insert(id, type_id)
            && before != type_id
            && self.types.get(before.0 as usize).is_none_or(|t| t.layout != Layout::NoMetadata)
        {
            let message = format!("metadata id {id} is defined twice, differently; the later definition counts");
            self.problem(Problem::new(Severity::Info, "duplicate_metadata_id", offset, message));
        }
    }

    /// Forgets all metadata ids (V6 sequence point with flag 2).
    pub fn forget_metadata(&mut self) {
        self.metadata.clear();
    }

    pub(super) fn type_of(&mut self, header: &Header, offset: u64) -> TypeId {
        if let Some(id) = self.metadata.get(&header.metadata_id) {
            return *id;
        }
        let id = header.metadata_id;
        let message = format!("metadata id {id} is not defined; the events are kept raw");
        self.problem(Problem::new(Severity::Error, "unknown_metadata", offset, message));
        let type_id = self.intern_type(unknown_type(format!("metadata_{id}")));
        if self.metadata.len() < MAX_IDS {
            self.metadata.insert(id, type_id);
        }
        type_id
    }

    pub(super) fn overridden_type(&mut self, base: TypeId, overrides: Overrides) -> TypeId {
        if let Some(id) = self.overridden.get(&(base, overrides)) {
            return *id;
        }
        let Some(mut event_type) = self.types.get(base.0 as usize).cloned() else { return base };
        event_type.opcode = overrides.opcode.or(event_type.opcode);
        event_type.keywords = overrides.keywords.unwrap_or(event_type.keywords);
        event_type.level = overrides.level.map_or(event_type.level, u32::from);
        event_type.version = overrides.version.map_or(event_type.version, u32::from);
        let id = self.intern_type(event_type);
        if self.overridden.len() < MAX_TYPES {
            self.overridden.insert((base, overrides), id);
        }
        id
    }

    /// Interns a thread.
    pub fn intern_thread(&mut self, thread: Thread) -> ThreadIndex {
        if let Some(index) = self.thread_by_content.get(&thread) {
            return *index;
        }
        if self.threads.len() >= MAX_THREADS {
            return MAX_THREADS as u32 - 1;
        }
        if self.threads.len() == MAX_THREADS - 1 {
            let message = format!("more than {MAX_THREADS} threads; the others are shown as one without an id");
            self.problem(Problem::new(Severity::DataLoss, "too_many_threads", 0, message));
            return self.new_thread(Thread { name: Some("other threads".to_owned()), ..Thread::default() });
        }
        self.new_thread(thread)
    }

    fn new_thread(&mut self, thread: Thread) -> ThreadIndex {
        let index = self.threads.len() as ThreadIndex;
        self.visitor.thread(index, &thread);
        self.threads.push(thread.clone());
        self.thread_by_content.insert(thread, index);
        index
    }

    /// A thread by its OS id (V1 to V4: the one process of the recording).
    pub fn os_thread(&mut self, thread_id: u64) -> ThreadIndex {
        self.intern_thread(Thread { process_id: self.default_process, thread_id, ..Thread::default() })
    }

    /// The OS id of a thread.
    pub fn thread_id(&self, thread: ThreadIndex) -> u64 {
        self.threads.get(thread as usize).map_or(0, |t| t.thread_id)
    }

    /// The OS process id that the header gives.
    pub fn default_process(&self) -> u64 {
        self.default_process
    }

    pub(super) fn thread_of<const V6: bool>(&mut self, raw: u64, offset: u64) -> ThreadIndex {
        if !V6 {
            return self.os_thread(raw);
        }
        if let Some(index) = self.thread_table.get(&raw) {
            return *index;
        }
        let message = format!("thread index {raw} is not defined");
        self.problem(Problem::new(Severity::Error, "unknown_thread", offset, message));
        let index = self.intern_thread(Thread { name: Some(format!("index {raw}")), ..Thread::default() });
        self.define_thread(raw, index);
        index
    }

    /// Binds a thread index of the file (V6); gives what it was bound to.
    pub fn define_thread(&mut self, raw: u64, thread: ThreadIndex) -> Option<ThreadIndex> {
        if self.thread_table.len() >= MAX_THREADS && !self.thread_table.contains_key(&raw) {
            return None;
        }
        self.thread_table.insert(raw, thread)
    }

    /// Binds a label list id (V6) for the events of this region.
    pub fn define_labels(&mut self, id: u32, labels: Labels, overrides: Overrides, offset: u64) {
        if self.label_table.len() < MAX_LABELS || self.label_table.contains_key(&id) {
            let place = self.add_labels(labels, offset);
            self.label_table.insert(id, (place, overrides));
        } else {
            self.too_many_labels(offset);
        }
    }

    fn too_many_labels(&mut self, offset: u64) {
        let message = "more label lists than fit into memory between two sequence points; events lose theirs";
        self.problem(Problem::new(Severity::DataLoss, "too_many_labels", offset, message));
    }

    /// Remembers labels for the events of this region.
    pub fn add_labels(&mut self, labels: Labels, offset: u64) -> u32 {
        if labels == Labels::default() {
            return 0;
        }
        if self.labels.len() >= MAX_LABELS {
            self.too_many_labels(offset);
            return 0;
        }
        if self.labels.last() != Some(&labels) {
            self.labels.push(labels);
        }
        self.labels.len() as u32 - 1
    }

    pub(super) fn labels_of<const V6: bool>(&mut self, header: &Header, cached: &mut Cached, offset: u64) {
        if V6 {
            (cached.labels, cached.overrides) = match self.label_table.get(&header.label_list) {
                Some(found) => *found,
                None if header.label_list == 0 => (0, Overrides::default()),
                None => {
                    let message = format!("label list {} is not defined", header.label_list);
                    self.problem(Problem::new(Severity::Error, "unknown_label_list", offset, message));
                    (0, Overrides::default())
                }
            };
        } else {
            let labels = Labels {
                activity_id: header.activity_id,
                related_activity_id: header.related_activity_id,
                json: String::new(),
            };
            cached.labels = self.add_labels(labels, offset);
        }
    }
}

/// Stands for a kind of event that nothing is known of.
fn unknown_type(name: String) -> EventType {
    EventType {
        provider: String::new(),
        provider_guid: None,
        event_id: 0,
        version: 0,
        name,
        opcode: None,
        level: 0,
        keywords: 0,
        layout: Layout::NoMetadata,
        message: None,
    }
}
