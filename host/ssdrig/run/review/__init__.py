"""`ssdrig review`: all plans of a level on one drive, in the order that drive state makes short, and one page. A review
is a folder of run folders; what is done of it is seen from them, so it goes on wherever it was cut short."""
