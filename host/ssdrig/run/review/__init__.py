"""`ssdrig review`: all plans of a level on one drive, in the order that drive state makes short, and one page. A review
is a folder of run folders; its progress is read from them, so it resumes from any interruption."""
